# The benchmark binary, from bench/**/*.cpp with Google Benchmark.

file(GLOB_RECURSE bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp")
if(bench_sources)
  find_package(benchmark REQUIRED)
  add_executable(ricci_bench ${bench_sources})
  ricci_target(ricci_bench)
  target_include_directories(ricci_bench PRIVATE "${PROJECT_SOURCE_DIR}/bench")
  target_link_libraries(ricci_bench PRIVATE ricci_internal fmt::fmt benchmark::benchmark
                                            benchmark::benchmark_main)
  set_target_properties(ricci_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
endif()
