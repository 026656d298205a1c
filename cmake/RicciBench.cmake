# ricci_bench_ir: Google benchmarks of graphs and transforms, from bench/ir.
# ricci_bench_arrays: what arrays and jitted calls cost, from bench/arrays.
# ricci_bench_decode: tokens a second of a language model, from bench/decode.
# ricci_bench_runner: our side of the workloads bench/run_bench.py measures.

# ricci_bench_cuda: the workloads on a GPU, from bench/cuda.
# They are built when they are asked for, all of them as ricci_benches: who runs the tests does not wait for them.

add_custom_target(ricci_benches)
# ricci_bench(<name> <libraries>...): what all of them need.
function(ricci_bench name)
  ricci_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/bench")
  target_link_libraries(${name} PRIVATE ricci_internal ${RICCI_FMT} ${ARGN})
  set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON RUNTIME_OUTPUT_DIRECTORY
                                                               "${PROJECT_BINARY_DIR}")
  add_dependencies(ricci_benches ${name})
endfunction()

file(GLOB workload_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/workloads/*.cpp")
add_library(ricci_workloads STATIC ${workload_sources})
ricci_bench(ricci_workloads)
if(RICCI_BACKEND_CUDA)
  find_package(nlohmann_json REQUIRED)
  file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/cuda/*.cpp")
  add_executable(ricci_bench_cuda ${cuda_sources})
  ricci_bench(ricci_bench_cuda ricci_workloads nlohmann_json::nlohmann_json)
endif()
if(NOT RICCI_BACKEND_CPU) # what the others measure
  return()
endif()

find_package(benchmark REQUIRED)
find_package(nlohmann_json REQUIRED)

file(GLOB_RECURSE ir_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/ir/*.cpp")
add_executable(ricci_bench_ir ${ir_sources})
ricci_bench(ricci_bench_ir benchmark::benchmark benchmark::benchmark_main)

add_executable(ricci_bench_arrays "${PROJECT_SOURCE_DIR}/bench/arrays/array_bench.cpp")
ricci_bench(ricci_bench_arrays benchmark::benchmark)

add_executable(ricci_bench_decode "${PROJECT_SOURCE_DIR}/bench/decode/main.cpp")
ricci_bench(ricci_bench_decode)

file(GLOB_RECURSE runner_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/runner/*.cpp")
add_executable(ricci_bench_runner ${runner_sources})
ricci_bench(ricci_bench_runner ricci_workloads nlohmann_json::nlohmann_json)
