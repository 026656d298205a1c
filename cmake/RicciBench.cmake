# ricci_bench_ir: Google benchmarks of graphs and transforms, from bench/ir.
# ricci_bench_arrays: what arrays and jitted calls cost, from bench/arrays.
# ricci_bench_decode: tokens a second of a language model, from bench/decode.
# ricci_bench_runner: our side of the workloads bench/run_bench.py measures.

# ricci_bench_cuda: the workloads on a GPU, from bench/cuda.

file(GLOB workload_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/workloads/*.cpp")
if(RICCI_BACKEND_CUDA)
  find_package(nlohmann_json REQUIRED)
  file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/cuda/*.cpp")
  add_executable(ricci_bench_cuda ${cuda_sources} ${workload_sources})
  ricci_target(ricci_bench_cuda)
  target_include_directories(ricci_bench_cuda PRIVATE "${PROJECT_SOURCE_DIR}/bench")
  target_link_libraries(ricci_bench_cuda PRIVATE ricci_internal ${RICCI_FMT}
                                                 nlohmann_json::nlohmann_json)
  set_target_properties(ricci_bench_cuda PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                    "${PROJECT_BINARY_DIR}")
endif()
if(NOT RICCI_BACKEND_CPU) # what the others measure
  return()
endif()

find_package(benchmark REQUIRED)
find_package(nlohmann_json REQUIRED)

file(GLOB_RECURSE ir_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/ir/*.cpp")
add_executable(ricci_bench_ir ${ir_sources})
ricci_target(ricci_bench_ir)
target_link_libraries(ricci_bench_ir PRIVATE ricci_internal ${RICCI_FMT} benchmark::benchmark
                                             benchmark::benchmark_main)

add_executable(ricci_bench_arrays "${PROJECT_SOURCE_DIR}/bench/arrays/array_bench.cpp")
ricci_target(ricci_bench_arrays)
target_link_libraries(ricci_bench_arrays PRIVATE ricci_internal ${RICCI_FMT} benchmark::benchmark)

add_executable(ricci_bench_decode "${PROJECT_SOURCE_DIR}/bench/decode/main.cpp")
ricci_target(ricci_bench_decode)
target_link_libraries(ricci_bench_decode PRIVATE ricci_internal ${RICCI_FMT})

file(GLOB_RECURSE runner_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/runner/*.cpp")
add_executable(ricci_bench_runner ${runner_sources} ${workload_sources})
ricci_target(ricci_bench_runner)
target_include_directories(ricci_bench_runner PRIVATE "${PROJECT_SOURCE_DIR}/bench")
target_link_libraries(ricci_bench_runner PRIVATE ricci_internal ${RICCI_FMT}
                                                 nlohmann_json::nlohmann_json)

set_target_properties(ricci_bench_ir ricci_bench_arrays ricci_bench_decode ricci_bench_runner
                      PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
