# examples/<name>/: all its sources make one program, built against the public
# library only and run as a test. What the test passes to it stands in
# example_<name>_arguments.

set(example_gpt_arguments --steps 3)
set(example_splats_arguments --steps 20 --out "${PROJECT_BINARY_DIR}/examples")
set(example_quantized_arguments --check)
set(headers_of "")
set(cpu_examples gpt quantized splats) # what only machine code is fast enough for

file(GLOB example_mains CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*/main.cpp")
foreach(main IN LISTS example_mains)
  cmake_path(GET main PARENT_PATH folder)
  cmake_path(GET folder FILENAME name)
  if(name IN_LIST cpu_examples AND NOT RICCI_BACKEND_CPU)
    continue()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  add_executable(example_${name} ${sources})
  ricci_target(example_${name})
  target_link_libraries(example_${name} PRIVATE Ricci::Ricci)
  set_target_properties(example_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                   "${PROJECT_BINARY_DIR}/examples")
  # What all of them include, if not alone, takes longer to read than most examples do.
  if(NOT headers_of)
    set(headers_of example_${name})
    ricci_precompile(example_${name} [["ricci/array.h"]])
  else()
    ricci_precompile(example_${name} REUSE_FROM ${headers_of})
  endif()
  add_test(NAME example.${name} COMMAND example_${name} ${example_${name}_arguments})
  set_tests_properties(example.${name} PROPERTIES LABELS none WORKING_DIRECTORY
                                                  "${PROJECT_SOURCE_DIR}")
endforeach()
