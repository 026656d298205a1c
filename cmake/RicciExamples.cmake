# examples/<name>.cpp and examples/<name>/main.cpp: each is built against the
# public library only, and run as a test.

file(GLOB example_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp"
     "${PROJECT_SOURCE_DIR}/examples/*/main.cpp")
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM name)
  if(name STREQUAL "main")
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
  endif()
  add_executable(example_${name} ${source})
  ricci_target(example_${name})
  target_link_libraries(example_${name} PRIVATE Ricci::Ricci)
  set_target_properties(example_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                   "${PROJECT_BINARY_DIR}/examples")
  add_test(NAME example.${name} COMMAND example_${name})
  set_tests_properties(example.${name} PROPERTIES LABELS none WORKING_DIRECTORY
                                                  "${PROJECT_SOURCE_DIR}")
endforeach()
