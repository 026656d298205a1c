# Shares of the tests, each a program of its own that is small enough to be built and run under
# sanitizers at a change: what the gate does in the `sanitized` preset, one of them at a time.
#   light    unit tests that include nothing beyond RICCI_LIGHT_FOLDERS, and the seeds of the light
#            fuzz harnesses
#   graph    unit tests that include nothing beyond RICCI_GRAPH_FOLDERS: transforms, programs
#   whole    all other unit tests, those of the tool among them, and those of arrays, data and networks
#   runtime  what users hold: devices, sessions, threads, forks, stopping, objects
#   cases    tests of the three folders that run the cases of ops or random programs
# Together they have every test of tests/unit, tests/array, tests/dataset, tests/nn, tests/checkpoints, tests/train and
# tests/runtime. A source is in the
# first share whose folders it keeps to, so that a new one is in some share without being listed.

# Headers of the tests that need no more than the light folders, and then no more than a graph's.
# What one of them declares is in the source of its name, where there is one.
set(light_headers
    property/random.h support/compare.h support/count.h support/derivative.h support/file_faults.h
    support/published_encoders.h support/sanitized.h support/scratch_folder.h support/splat_scene.h
    test_paths.h ops/control_bodies.h runtime/counted_allocations.h)
set(graph_headers ${light_headers} support/claiming_target.h support/singular_points.h
                  support/tool.h)

# ricci_includes_only(<out> <source> <headers> <folders>...): of what is ours it includes those
# headers of the tests and nothing beyond the folders.
function(ricci_includes_only out source headers)
  set(${out} ON PARENT_SCOPE)
  file(STRINGS "${source}" includes REGEX "^#include \"")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" header "${include}")
    string(REGEX REPLACE "^(ricci/(compiler/)?)?([a-z]*)/.*" "\\3" folder "${header}")
    set(ours OFF)
    if(header MATCHES "^ricci/" OR EXISTS "${PROJECT_SOURCE_DIR}/src/${header}")
      set(ours ON)
    endif()
    if(NOT header IN_LIST ${headers} AND NOT (ours AND folder IN_LIST ARGN))
      set(${out} OFF PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# The sources of headers that have one.
function(ricci_sources_of out)
  set(found "")
  foreach(header IN LISTS ARGN)
    string(REGEX REPLACE "[.]h$" ".cpp" source "${tests_dir}/${header}")
    if(EXISTS "${source}")
      list(APPEND found "${source}")
    endif()
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# ricci_add_share(<name> <library> <sources>...): ricci_<name>_tests, built when it is asked for.
function(ricci_add_share name library)
  set(program ricci_${name}_tests)
  list(REMOVE_DUPLICATES ARGN)
  add_executable(${program} EXCLUDE_FROM_ALL ${ARGN})
  ricci_target(${program})
  target_compile_options(${program} PRIVATE ${RICCI_TEST_OPTIONS})
  target_include_directories(${program} PRIVATE "${tests_dir}" "${CMAKE_CURRENT_BINARY_DIR}"
                                                "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  target_link_libraries(${program} PRIVATE ${library} ${RICCI_FMT} GTest::gtest GTest::gtest_main)
  ricci_precompile(${program} <gtest/gtest.h> ${RICCI_GRAPH_HEADERS}
                   [["ricci/interp/interpreter.h"]] [["ricci/ir/text.h"]])
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endfunction()

foreach(share light graph whole runtime cases)
  set(${share}_sources "")
endforeach()
foreach(source IN LISTS has_unit has_array has_dataset has_nn has_checkpoints has_train has_runtime)
  file(STRINGS "${source}" tables
       REGEX "^#include \"(ops/(cases|transformed_case)|property/[^r][a-z_]*)[.]h\"")
  file(STRINGS "${source}" runs_tool REGEX "run_tool|run_shell|RICCI_TOOL_PATH")
  ricci_includes_only(is_light "${source}" light_headers ${RICCI_LIGHT_FOLDERS})
  ricci_includes_only(is_graph "${source}" graph_headers ${RICCI_GRAPH_FOLDERS})
  if(tables)
    list(APPEND cases_sources "${source}")
  elseif(source MATCHES "/tests/runtime/")
    list(APPEND runtime_sources "${source}")
  elseif(is_light)
    list(APPEND light_sources "${source}")
  elseif(is_graph AND NOT runs_tool)
    list(APPEND graph_sources "${source}")
  else()
    list(APPEND whole_sources "${source}")
  endif()
endforeach()

set(light_seeds "")
foreach(name IN LISTS RICCI_LIGHT_HARNESSES)
  if(EXISTS "${tests_dir}/fuzz/${name}.cpp" AND NOT "${tests_dir}/fuzz/${name}.cpp" IN_LIST
                                                RICCI_TESTS_LEFT_OUT)
    list(APPEND light_seeds "${tests_dir}/fuzz/${name}.cpp")
  endif()
endforeach()
ricci_list_harnesses("${CMAKE_CURRENT_BINARY_DIR}/light" ${light_seeds})
ricci_sources_of(light_support ${light_headers})
ricci_add_share(light ricci_readers ${light_sources} ${light_seeds} ${light_support}
                "${tests_dir}/fuzz/replay_test.cpp")
target_link_libraries(ricci_light_tests PRIVATE $<TARGET_NAME_IF_EXISTS:ricci_settings>)

ricci_sources_of(graph_support ${graph_headers})
file(GLOB singular CONFIGURE_DEPENDS "${tests_dir}/support/singular_*.cpp")
list(APPEND graph_support ${singular})
ricci_add_share(graph ricci_graph ${graph_sources} ${graph_support})

# What the others share is small, but for the tables and what draws programs.
set(common_support ${graph_support} "${tests_dir}/support/elf.cpp")
if(RICCI_BACKEND_CPU)
  list(APPEND common_support "${tests_dir}/support/c_program.cpp"
       "${tests_dir}/support/vector_math_points.cpp")
endif()
ricci_add_share(whole ricci_internal ${whole_sources} ${common_support})
ricci_add_share(runtime ricci_internal ${runtime_sources} ${common_support})
ricci_unity(ricci_runtime_tests runtime ${runtime_sources})

# Tables are made once and watch nothing themselves: neither an optimiser nor a sanitizer is worth
# what it takes to read them.
file(GLOB table_sources CONFIGURE_DEPENDS "${tests_dir}/ops/cases.cpp"
     "${tests_dir}/ops/*_cases.cpp")
add_library(ricci_case_tables STATIC EXCLUDE_FROM_ALL ${table_sources})
ricci_target(ricci_case_tables)
target_include_directories(ricci_case_tables PUBLIC "${tests_dir}" "${CMAKE_CURRENT_BINARY_DIR}")
target_link_libraries(ricci_case_tables PUBLIC ricci_internal ${RICCI_FMT} GTest::gtest)
target_compile_options(ricci_case_tables PRIVATE -fno-sanitize=all -O0 -g0 -U_FORTIFY_SOURCE)
ricci_unity(ricci_case_tables ops ${table_sources})
file(GLOB drawing CONFIGURE_DEPENDS "${tests_dir}/property/*.cpp" "${tests_dir}/support/*.cpp")
list(APPEND drawing "${tests_dir}/ops/transformed_case.cpp" "${tests_dir}/backend/agreement.cpp")
list(FILTER drawing EXCLUDE REGEX "_test[.]cpp$")
list(REMOVE_ITEM drawing ${RICCI_TESTS_LEFT_OUT})
ricci_add_share(cases ricci_case_tables ${cases_sources} ${drawing}
                "${tests_dir}/runtime/counted_allocations.cpp")

# No test of `runtime` starts the tool, which takes long to build.
foreach(share whole runtime cases)
  set(needed ricci_runtime_archive)
  if(NOT share STREQUAL runtime)
    list(APPEND needed ricci_tool)
  endif()
  foreach(target IN LISTS needed)
    if(TARGET ${target})
      add_dependencies(ricci_${share}_tests ${target})
    endif()
  endforeach()
endforeach()
