# One libFuzzer executable per tests/fuzz/<name>_fuzz.cpp. The fuzz preset gives
# the library its coverage instrumentation; the harness adds the fuzzer's main.
# Harnesses that only read files, RICCI_LIGHT_HARNESSES, are linked with part of the
# library and built by `light_fuzzers`; the others have what runs programs as well and
# what the tests share. Those that run programs on the CPU are left out of builds without
# it. `fuzzers` builds all of them and nothing that none of them needs.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "RICCI_BUILD_FUZZERS needs Clang; use the fuzz preset")
endif()

find_package(GTest REQUIRED)
set(tests_dir "${PROJECT_SOURCE_DIR}/tests")
# Of what tests share, what harnesses need.
set(shared_sources
    backend/agreement property/edge_numbers property/extreme_graphs property/generator
    property/large_programs property/nested_programs property/woven_programs support/checked_run
    support/compare support/exact_nodes support/guarded_buffer support/guarded_run support/lir_run
    support/open_numbers support/rounded_otherwise)
list(TRANSFORM shared_sources REPLACE "(.+)" "${tests_dir}/\\1.cpp")
list(REMOVE_ITEM shared_sources ${RICCI_TESTS_LEFT_OUT})
file(GLOB case_sources CONFIGURE_DEPENDS "${tests_dir}/ops/cases.cpp"
     "${tests_dir}/ops/*_cases.cpp")
add_library(ricci_fuzz_support STATIC EXCLUDE_FROM_ALL ${shared_sources})
add_library(ricci_fuzz_cases STATIC EXCLUDE_FROM_ALL ${case_sources})
foreach(library ricci_fuzz_support ricci_fuzz_cases)
  ricci_target(${library})
  target_include_directories(${library} PUBLIC "${tests_dir}" "${CMAKE_CURRENT_BINARY_DIR}")
  target_link_libraries(${library} PUBLIC ricci_running ${RICCI_FMT} GTest::gtest)
  # New paths through the tests' own code are no discoveries.
  target_compile_options(${library} PRIVATE -fno-sanitize=all)
endforeach()
# Tables are made once: what an optimiser takes to read them is more than it saves.
target_compile_options(ricci_fuzz_cases PRIVATE -O0 -g0)
target_link_libraries(ricci_fuzz_support PUBLIC ricci_fuzz_cases)
ricci_precompile(ricci_fuzz_support <gtest/gtest.h> ${RICCI_GRAPH_HEADERS}
                 [["ricci/interp/interpreter.h"]] [["ricci/ir/text.h"]])
ricci_unity(ricci_fuzz_cases ops ${case_sources})
foreach(folder property support)
  set(found ${shared_sources})
  list(FILTER found INCLUDE REGEX "/tests/${folder}/")
  ricci_unity(ricci_fuzz_support ${folder} ${found})
endforeach()

# The gate runs what is listed there.
list(JOIN RICCI_LIGHT_HARNESSES " " light_harnesses)
file(WRITE "${PROJECT_BINARY_DIR}/light_fuzzers.txt" "${light_harnesses}\n")
add_custom_target(light_fuzzers)
add_custom_target(fuzzers)
file(GLOB harnesses CONFIGURE_DEPENDS "${tests_dir}/fuzz/*_fuzz.cpp")
list(REMOVE_ITEM harnesses ${RICCI_TESTS_LEFT_OUT})
foreach(harness IN LISTS harnesses)
  cmake_path(GET harness STEM name)
  add_executable(${name} ${harness})
  ricci_target(${name})
  target_include_directories(${name} PRIVATE "${tests_dir}")
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  if(name IN_LIST RICCI_LIGHT_HARNESSES)
    target_link_libraries(${name} PRIVATE ricci_settings ricci_readers)
    add_dependencies(light_fuzzers ${name})
  else()
    target_link_libraries(${name} PRIVATE ricci_fuzz_support)
  endif()
  add_dependencies(fuzzers ${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzzers")
endforeach()
