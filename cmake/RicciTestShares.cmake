# `ricci_light_tests`: the unit tests that include nothing beyond RICCI_LIGHT_FOLDERS, and the seeds
# of the light fuzz harnesses. Small enough to be built under sanitizers at every change, which is
# what the gate does in the `sanitized` preset. `ricci_runtime_tests`: those of what users hold
# (devices, sessions, threads, forks, stopping, objects), with the whole library, as its other share.

# Headers of tests/support that need no more than their own sources do.
set(light_support support/compare.h support/count.h support/file_faults.h
                  support/published_encoders.h test_paths.h)

# ricci_is_light(<out> <source>): includes only what is in the light folders.
function(ricci_is_light out source)
  set(${out} ON PARENT_SCOPE)
  file(STRINGS "${source}" includes REGEX "^#include \"")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" header "${include}")
    string(REGEX REPLACE "^(ricci/)?([a-z]*)/.*" "\\2" folder "${header}")
    set(ours OFF)
    if(header MATCHES "^ricci/" OR EXISTS "${PROJECT_SOURCE_DIR}/src/${header}")
      set(ours ON)
    endif()
    if(NOT header IN_LIST light_support AND NOT (ours AND folder IN_LIST RICCI_LIGHT_FOLDERS))
      set(${out} OFF PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

set(light_sources "${tests_dir}/support/compare.cpp" "${tests_dir}/support/published_encoders.cpp"
                  "${tests_dir}/fuzz/replay_test.cpp")
foreach(source IN LISTS has_unit)
  ricci_is_light(light "${source}")
  if(light)
    list(APPEND light_sources "${source}")
  endif()
endforeach()
set(light_seeds "")
foreach(name IN LISTS RICCI_LIGHT_HARNESSES)
  if(EXISTS "${tests_dir}/fuzz/${name}.cpp")
    list(APPEND light_seeds "${tests_dir}/fuzz/${name}.cpp")
  endif()
endforeach()
ricci_list_harnesses("${CMAKE_CURRENT_BINARY_DIR}/light" ${light_seeds})

add_executable(ricci_light_tests EXCLUDE_FROM_ALL ${light_sources} ${light_seeds})
ricci_target(ricci_light_tests)
target_include_directories(ricci_light_tests PRIVATE "${tests_dir}" "${CMAKE_CURRENT_BINARY_DIR}"
                                                     "${CMAKE_CURRENT_BINARY_DIR}/light")
target_link_libraries(ricci_light_tests PRIVATE ricci_light GTest::gtest GTest::gtest_main)
ricci_precompile(ricci_light_tests <gtest/gtest.h> ${RICCI_GRAPH_HEADERS})
set_target_properties(ricci_light_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                   "${PROJECT_BINARY_DIR}")

# Equal bits are tested on random programs, which come with every table of cases: too much to build.
set(runtime_sources ${has_runtime})
list(REMOVE_ITEM runtime_sources "${tests_dir}/runtime/bits_test.cpp")
set(runtime_support compare)
if(RICCI_BACKEND_CPU)
  list(APPEND runtime_support c_program elf tool)
endif()
list(TRANSFORM runtime_support REPLACE "(.+)" "${tests_dir}/support/\\1.cpp")
add_executable(ricci_runtime_tests EXCLUDE_FROM_ALL ${runtime_sources} ${runtime_support})
ricci_target(ricci_runtime_tests)
target_include_directories(ricci_runtime_tests PRIVATE "${tests_dir}" "${CMAKE_CURRENT_BINARY_DIR}")
target_link_libraries(ricci_runtime_tests PRIVATE ricci_internal ${RICCI_FMT} GTest::gtest
                                                  GTest::gtest_main)
ricci_precompile(ricci_runtime_tests <gtest/gtest.h> ${RICCI_GRAPH_HEADERS})
ricci_unity(ricci_runtime_tests runtime ${runtime_sources})
set_target_properties(ricci_runtime_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                     "${PROJECT_BINARY_DIR}")
if(TARGET ricci_runtime_archive)
  add_dependencies(ricci_runtime_tests ricci_runtime_archive)
endif()
