# The test binary `ricci_tests` and its CTest groups. A group is a prefix of the
# test-suite name; it is registered when its folder has sources, and `unit` runs
# every suite no registered group claims, so that no test is ever left out.

find_package(GTest REQUIRED)

if(NOT RICCI_BACKEND_LIR)
  message(FATAL_ERROR "The tests compare with the interpreter of programs: they need "
                      "RICCI_BACKEND_LIR. RICCI_BUILD_TESTS=OFF builds without them.")
endif()

# Tests of the CPU back end itself, of its threads and of what is kept of its machine code, and what
# only they use: left out where it is. Others run on whatever devices there are.
set(cpu_tests
    backend/attached_kernels_test backend/attention_test backend/complex_kernels_test
    backend/conv_test backend/empty_sizes_test backend/host_calls_test
    backend/extreme_attributes_test backend/program_promises_test backend/cpu_guard_pages_test
    backend/cpu_ops_test
    backend/cpu_transforms_test backend/host_kernels_test backend/matmul_test
    backend/program_bytes_test
    backend/shared_steps_test fuzz/cache_folder_fuzz fuzz/program_bytes_fuzz
    property/compiled_programs_test property/file_attacks_test runtime/ahead_of_time_test
    runtime/bits_test runtime/code_folder_test runtime/float_environment_test runtime/fork_test
    runtime/pipeline_test runtime/session_test runtime/shared_use_test runtime/stop_test
    runtime/threads_test support/c_program support/guarded_run support/vector_math_points
    unit/cpu_jit_test unit/cpu_vector_math_test unit/schedule_bytes_test unit/schedule_calls_test
    unit/tool_compile_test)
# What takes the place of some of it.
set(without_cpu_tests support/checked_run)

set(left_out ${cpu_tests})
if(RICCI_BACKEND_CPU)
  set(left_out ${without_cpu_tests})
endif()
list(TRANSFORM left_out REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tests/\\1.cpp")

set(tests_dir "${PROJECT_SOURCE_DIR}/tests")
set(sources "")
set(RICCI_TEST_FOLDERS unit ops property golden errors reference backend runtime fuzz
    CACHE STRING "Which folders of tests are built: fewer are built sooner")
mark_as_advanced(RICCI_TEST_FOLDERS)
foreach(folder ${RICCI_TEST_FOLDERS} support)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS "${tests_dir}/${folder}/*.cpp")
  list(REMOVE_ITEM found ${left_out})
  list(APPEND sources ${found})
  set(has_${folder} "${found}")
endforeach()

if(sources)
  # The harnesses' functions become ordinary ones, to which a test feeds their seeds.
  foreach(harness IN LISTS has_fuzz)
    cmake_path(GET harness STEM name)
    set_source_files_properties(
      "${harness}" PROPERTIES COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=ricci_replay_${name})
  endforeach()
  # ricci_list_harnesses(<folder> <sources>...): their list, which the test includes.
  function(ricci_list_harnesses folder)
    set(lines "")
    list(FILTER ARGN INCLUDE REGEX "_fuzz[.]cpp$")
    foreach(harness IN LISTS ARGN)
      cmake_path(GET harness STEM name)
      string(APPEND lines "RICCI_HARNESS(${name})\n")
    endforeach()
    file(GENERATE OUTPUT "${folder}/fuzz_harnesses.def" CONTENT "${lines}")
  endfunction()
  ricci_list_harnesses("${CMAKE_CURRENT_BINARY_DIR}/all" ${has_fuzz})

  add_executable(ricci_tests ${sources})
  ricci_target(ricci_tests)
  target_include_directories(ricci_tests PRIVATE "${tests_dir}" "${CMAKE_CURRENT_BINARY_DIR}"
                                                 "${CMAKE_CURRENT_BINARY_DIR}/all")
  target_link_libraries(ricci_tests PRIVATE ricci_internal ${RICCI_FMT} GTest::gtest
                                            GTest::gtest_main)
  # Other tests name their helpers as they like, and are compiled one by one.
  foreach(folder ops property runtime support)
    ricci_unity(ricci_tests ${folder} ${has_${folder}})
  endforeach()
  ricci_precompile(ricci_tests <gtest/gtest.h> ${RICCI_GRAPH_HEADERS}
                   [["ricci/interp/interpreter.h"]] [["ricci/ir/text.h"]])
  set_target_properties(ricci_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  if(TARGET ricci_tool)
    add_dependencies(ricci_tests ricci_tool)
  endif()
  if(TARGET ricci_runtime_archive)
    add_dependencies(ricci_tests ricci_runtime_archive)
  endif()

  # A parameterised suite is listed as Instance/Suite, hence the second pattern.
  function(ricci_add_test_group name filter)
    add_test(NAME ${name} COMMAND ricci_tests "--gtest_filter=${filter}" --gtest_brief=1)
    set_tests_properties(
      ${name} PROPERTIES LABELS none WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
                         FAIL_REGULAR_EXPRESSION "\\[==========\\] 0 tests from")
  endfunction()

  set(claimed "")
  # group:prefix:folder
  foreach(group ops:OpCases:ops transforms:OpTransforms:ops mutations:OpMutations:ops
                property:Property:property golden:Golden:golden errors:Diagnostics:errors
                reference:Reference:reference backend:Backend:backend runtime:Runtime:runtime
                fuzz_corpus:FuzzCorpus:fuzz)
    string(REPLACE ":" ";" parts "${group}")
    list(GET parts 0 name)
    list(GET parts 1 prefix)
    list(GET parts 2 folder)
    if(has_${folder})
      ricci_add_test_group(${name} "${prefix}*:*/${prefix}*")
      string(APPEND claimed "${prefix}*:*/${prefix}*:")
    endif()
  endforeach()
  if(has_unit)
    ricci_add_test_group(unit "*-${claimed}")
  endif()
endif()

# tests/compile_fail/x.cpp must be refused by the compiler, and must be accepted
# with RICCI_EXPECT_OK defined: so it is refused for the reason it was written for.
file(GLOB snippets CONFIGURE_DEPENDS "${tests_dir}/compile_fail/*.cpp")
foreach(snippet IN LISTS snippets)
  cmake_path(GET snippet STEM name)
  set(compile "${CMAKE_CXX_COMPILER}" -std=c++20 -fsyntax-only -Wall -Werror=switch
              "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/src" "${snippet}")
  add_test(NAME compile_fail.${name}.refused COMMAND ${compile})
  add_test(NAME compile_fail.${name}.accepted COMMAND ${compile} -DRICCI_EXPECT_OK)
  set_tests_properties(compile_fail.${name}.refused PROPERTIES WILL_FAIL ON LABELS none)
  set_tests_properties(compile_fail.${name}.accepted PROPERTIES LABELS none)
endforeach()

# What is installed works for others. They compile without the options of a sanitizer or of
# coverage.
if(RICCI_INSTALL AND TARGET ricci_tool AND NOT CMAKE_CXX_FLAGS)
  add_test(
    NAME install
    COMMAND
      "${CMAKE_COMMAND}" "-DBUILD=${PROJECT_BINARY_DIR}" "-DSOURCES=${tests_dir}/install"
      "-DSCRATCH=${PROJECT_BINARY_DIR}/install-check" "-DCXX=${CMAKE_CXX_COMPILER}"
      "-DTESTS=$<TARGET_FILE:ricci_tests>" "-DAHEAD_OF_TIME=${RICCI_BACKEND_CPU}" -P
      "${tests_dir}/install/check.cmake")
  set_tests_properties(install PROPERTIES LABELS none)
endif()
