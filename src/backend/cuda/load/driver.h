// The CUDA driver's functions (libcuda), as far as they are used here, with declarations of our
// own: its binary interface is stable, and building needs no toolkit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ricci::cuda {

using Status = int;  ///< CUresult; 0 is success
inline constexpr Status OutOfMemory = 2;
inline constexpr Status NoDevice = 100;
inline constexpr Status NotReady = 600;

using DeviceNumber = int;
using Address = std::uint64_t;  ///< CUdeviceptr
using ContextHandle = struct CUctx_st*;
using Stream = struct CUstream_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using Graph_ = struct CUgraph_st*;
using GraphNode = struct CUgraphNode_st*;
using GraphExec = struct CUgraphExec_st*;
using Pool = struct CUmemPoolHandle_st*;

// Numbers of attributes, as the driver counts them.
inline constexpr int AttributeMajor = 75;
inline constexpr int AttributeMinor = 76;
inline constexpr int AttributeSharedOptIn = 97;
inline constexpr int AttributePools = 115;
inline constexpr int PoolReleaseThreshold = 4;
inline constexpr int FunctionDynamicShared = 8;
inline constexpr unsigned StreamNonBlocking = 1;
inline constexpr int CaptureRelaxed = 2;
inline constexpr unsigned CaptureSetWaits = 1;

/// CUgraphExecUpdateResultInfo
struct UpdateResult {
  int result = 0;
  void* error_node = nullptr;
  void* error_from_node = nullptr;
};

// F(member, exported name, parameters)
#define RICCI_CUDA_DRIVER(F)                                                                       \
  F(init, "cuInit", (unsigned flags))                                                              \
  F(driver_version, "cuDriverGetVersion", (int* version))                                          \
  F(error_name, "cuGetErrorName", (Status status, const char** name))                              \
  F(error_string, "cuGetErrorString", (Status status, const char** text))                          \
  F(device_count, "cuDeviceGetCount", (int* count))                                                \
  F(device_get, "cuDeviceGet", (DeviceNumber * device, int ordinal))                               \
  F(device_name, "cuDeviceGetName", (char* name, int length, DeviceNumber device))                 \
  F(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, DeviceNumber device))    \
  F(device_memory, "cuDeviceTotalMem_v2", (std::size_t* bytes, DeviceNumber device))               \
  F(retain_context, "cuDevicePrimaryCtxRetain", (ContextHandle * context, DeviceNumber device))    \
  F(set_context, "cuCtxSetCurrent", (ContextHandle context))                                       \
  F(module_load, "cuModuleLoadData", (Module * module, const void* image))                         \
  F(module_unload, "cuModuleUnload", (Module module))                                              \
  F(module_function, "cuModuleGetFunction",                                                        \
    (Function * function, Module module, const char* name))                                        \
  F(function_set, "cuFuncSetAttribute", (Function function, int attribute, int value))             \
  F(launch, "cuLaunchKernel",                                                                      \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,       \
     unsigned block_y, unsigned block_z, unsigned shared, Stream stream, void** arguments,         \
     void** extra))                                                                                \
  F(allocate, "cuMemAlloc_v2", (Address * at, std::size_t bytes))                                  \
  F(free, "cuMemFree_v2", (Address at))                                                            \
  F(allocate_async, "cuMemAllocAsync", (Address * at, std::size_t bytes, Stream stream))           \
  F(free_async, "cuMemFreeAsync", (Address at, Stream stream))                                     \
  F(default_pool, "cuDeviceGetDefaultMemPool", (Pool * pool, DeviceNumber device))                 \
  F(pool_set, "cuMemPoolSetAttribute", (Pool pool, int attribute, void* value))                    \
  F(pool_trim, "cuMemPoolTrimTo", (Pool pool, std::size_t keep))                                   \
  F(allocate_host, "cuMemAllocHost_v2", (void** at, std::size_t bytes))                            \
  F(free_host, "cuMemFreeHost", (void* at))                                                        \
  F(copy_in, "cuMemcpyHtoDAsync_v2",                                                               \
    (Address to, const void* from, std::size_t bytes, Stream stream))                              \
  F(copy_out, "cuMemcpyDtoHAsync_v2", (void* to, Address from, std::size_t bytes, Stream stream))  \
  F(copy, "cuMemcpyDtoDAsync_v2", (Address to, Address from, std::size_t bytes, Stream stream))    \
  F(fill8, "cuMemsetD8Async", (Address at, unsigned char value, std::size_t count, Stream stream)) \
  F(fill32, "cuMemsetD32Async", (Address at, unsigned value, std::size_t count, Stream stream))    \
  F(stream_create, "cuStreamCreate", (Stream * stream, unsigned flags))                            \
  F(stream_destroy, "cuStreamDestroy_v2", (Stream stream))                                         \
  F(stream_wait, "cuStreamSynchronize", (Stream stream))                                           \
  F(stream_query, "cuStreamQuery", (Stream stream))                                                \
  F(capture_begin, "cuStreamBeginCapture_v2", (Stream stream, int mode))                           \
  F(capture_end, "cuStreamEndCapture", (Stream stream, Graph_ * graph))                            \
  F(capture_info, "cuStreamGetCaptureInfo_v2",                                                     \
    (Stream stream, int* status, std::uint64_t* id, Graph_* graph, const GraphNode** nodes,        \
     std::size_t* count))                                                                          \
  F(capture_wait_for, "cuStreamUpdateCaptureDependencies",                                         \
    (Stream stream, GraphNode * nodes, std::size_t count, unsigned flags))                         \
  F(graph_destroy, "cuGraphDestroy", (Graph_ graph))                                               \
  F(graph_instantiate, "cuGraphInstantiateWithFlags",                                              \
    (GraphExec * exec, Graph_ graph, unsigned long long flags))                                    \
  F(graph_update, "cuGraphExecUpdate_v2", (GraphExec exec, Graph_ graph, UpdateResult * result))   \
  F(graph_launch, "cuGraphLaunch", (GraphExec exec, Stream stream))                                \
  F(graph_exec_destroy, "cuGraphExecDestroy", (GraphExec exec))

struct Driver {
#define RICCI_CUDA_MEMBER(member, exported, parameters) Status(*member) parameters = nullptr;
  RICCI_CUDA_DRIVER(RICCI_CUDA_MEMBER)
#undef RICCI_CUDA_MEMBER

  /// `CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected`
  [[nodiscard]] std::string words_for(Status status) const;
  /// Unless all went well: UserError(out_of_memory) without room, else DeviceError that says what
  /// was being done.
  void check(Status status, const char* doing) const;
};

/// The driver, loaded and initialised once, or why it cannot be used.
struct LoadedDriver {
  Driver driver;
  std::string why_not;           ///< empty: it can be used, and there is a GPU
  std::uint64_t generation = 0;  ///< of the process that loaded it
  int version = 0;               ///< of CUDA it is for, as it counts: 12040 is 12.4; 0: none
};
[[nodiscard]] const LoadedDriver& loaded_driver();
/// The same from certain folders, not kept: for tests.
[[nodiscard]] LoadedDriver load_driver(const std::string& folders);

}  // namespace ricci::cuda
