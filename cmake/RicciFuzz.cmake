# One libFuzzer executable per tests/fuzz/<name>_fuzz.cpp. The fuzz preset gives
# the library its coverage instrumentation; the harness adds the fuzzer's main.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "RICCI_BUILD_FUZZERS needs Clang; use the fuzz preset")
endif()

file(GLOB harnesses CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
foreach(harness IN LISTS harnesses)
  cmake_path(GET harness STEM name)
  add_executable(${name} ${harness} "${PROJECT_SOURCE_DIR}/tests/support/guarded_buffer.cpp")
  ricci_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  target_link_libraries(${name} PRIVATE ricci_internal fmt::fmt)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzzers")
endforeach()
