# The test binary `ricci_tests` and its CTest groups. A group is a prefix of the
# test-suite name; it is registered when its folder has sources, and `unit` runs
# every suite no registered group claims, so that no test is ever left out.
# The tests themselves are optimised little or not at all: what they measure is the library.

find_package(GTest REQUIRED)

if(NOT RICCI_BACKEND_LIR)
  message(FATAL_ERROR "The tests compare with the interpreter of programs: they need "
                      "RICCI_BACKEND_LIR. RICCI_BUILD_TESTS=OFF builds without them.")
endif()

set(tests_dir "${PROJECT_SOURCE_DIR}/tests")
set(sources "")
set(test_folders unit ops property golden errors reference backend runtime array dataset nn
                 checkpoints train fuzz)
# Empty unless somebody asks, so that a build tree from before a folder was added has it too.
set(RICCI_ONLY_TEST_FOLDERS "" CACHE STRING
    "Which folders of tests are built, where not all: fewer are built sooner")
mark_as_advanced(RICCI_ONLY_TEST_FOLDERS)
if(RICCI_ONLY_TEST_FOLDERS)
  set(test_folders ${RICCI_ONLY_TEST_FOLDERS})
endif()
foreach(folder ${test_folders} support)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS "${tests_dir}/${folder}/*.cpp")
  list(REMOVE_ITEM found ${RICCI_TESTS_LEFT_OUT})
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

  # Most of a test's building is the optimising of what runs once: GCC's -Og spares a third of it, and
  # sanitized by Clang the tables of cases take seven times as long with -O1 as without.
  set(briefly $<IF:$<CXX_COMPILER_ID:GNU>,-Og,-O0$<SEMICOLON>-U_FORTIFY_SOURCE>)
  set(RICCI_TEST_OPTIONS $<$<CONFIG:MinSizeRel>:-O0;-g0;-U_FORTIFY_SOURCE>
                         $<$<CONFIG:RelWithDebInfo>:${briefly}>)

  add_executable(ricci_tests ${sources})
  ricci_target(ricci_tests)
  target_include_directories(ricci_tests PRIVATE "${tests_dir}" "${CMAKE_CURRENT_BINARY_DIR}"
                                                 "${CMAKE_CURRENT_BINARY_DIR}/all")
  target_link_libraries(ricci_tests PRIVATE $<TARGET_NAME_IF_EXISTS:ricci_settings>
                                            ricci_internal ${RICCI_FMT} GTest::gtest
                                            GTest::gtest_main)
  target_compile_options(ricci_tests PRIVATE ${RICCI_TEST_OPTIONS})
  # Each of these sources has a namespace of its own, or names that no other has. Seeds of harnesses are compiled with
  # definitions of their own.
  foreach(folder unit ops property reference backend runtime array dataset nn train support)
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
                array:Array:array dataset:Data:dataset nn:Nn:nn
                checkpoints:Checkpoint:checkpoints train:Train:train fuzz_corpus:FuzzCorpus:fuzz)
    string(REPLACE ":" ";" parts "${group}")
    list(GET parts 0 name)
    list(GET parts 1 prefix)
    list(GET parts 2 folder)
    if(has_${folder} AND (NOT name STREQUAL mutations OR RICCI_BACKEND_CPU))
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
  # What is right has no warning either: calls of templates show those of the library's headers.
  add_test(NAME compile_fail.${name}.accepted COMMAND ${compile} -Wextra -Werror -DRICCI_EXPECT_OK)
  set_tests_properties(compile_fail.${name}.refused PROPERTIES WILL_FAIL ON LABELS none)
  set_tests_properties(compile_fail.${name}.accepted PROPERTIES LABELS none)
  # Mistakes in calls of the user's surface are refused in a few lines.
  if(name MATCHES "^(array|graph)_")
    list(JOIN compile "|" command)
    # Those of graphs end in ricci/build/refused.h.
    set(most 24)
    if(name MATCHES "^graph_")
      set(most 12)
    endif()
    add_test(NAME compile_fail.${name}.short
             COMMAND "${CMAKE_COMMAND}" "-DCOMMAND=${command}" -DMOST_LINES=${most} -P
                     "${tests_dir}/compile_fail/count_lines.cmake")
    set_tests_properties(compile_fail.${name}.short PROPERTIES LABELS none)
  endif()
endforeach()

# Below C++20 one line says so.
file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/ricci/*.h")
foreach(path IN LISTS headers)
  cmake_path(GET path STEM header)
  add_test(NAME compile_fail.cpp17.${header}
           COMMAND "${CMAKE_COMMAND}"
                   "-DCOMMAND=${CMAKE_CXX_COMPILER}|-std=c++17|-fsyntax-only|-w|-x|c++|-I${PROJECT_SOURCE_DIR}/include|${PROJECT_SOURCE_DIR}/include/ricci/${header}.h"
                   -DMOST_LINES=6 -P "${tests_dir}/compile_fail/count_lines.cmake")
  set_tests_properties(compile_fail.cpp17.${header} PROPERTIES LABELS none)
endforeach()

# Printers for gdb, where it is installed.
find_program(RICCI_GDB gdb)
mark_as_advanced(RICCI_GDB)
if(RICCI_GDB AND TARGET ricci_tests AND NOT CMAKE_CXX_FLAGS)
  add_executable(ricci_gdb_subject "${tests_dir}/gdb/subject.cpp")
  target_link_libraries(ricci_gdb_subject PRIVATE ricci)
  target_compile_options(ricci_gdb_subject PRIVATE -O0 -g)
  add_dependencies(ricci_tests ricci_gdb_subject)
  add_test(NAME gdb
           COMMAND "${CMAKE_COMMAND}" "-DGDB=${RICCI_GDB}"
                   "-DSUBJECT=$<TARGET_FILE:ricci_gdb_subject>"
                   "-DPRINTERS=${PROJECT_SOURCE_DIR}/share/ricci_gdb.py" -P
                   "${tests_dir}/gdb/check.cmake")
  set_tests_properties(gdb PROPERTIES LABELS none)
endif()

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
