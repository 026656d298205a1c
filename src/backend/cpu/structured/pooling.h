// Pooling over windows of row-major images [N, C, H, W], parallel over planes.
#pragma once

#include <array>
#include <cstdint>

#include "ricci/device/thread_pool.h"
#include "ricci/op/conv.h"
#include "ricci/type/dtype.h"
#include "ricci/type/type.h"

namespace ricci::cpu {

struct PoolGeometry {
  DType dtype = DType::F32;
  std::int64_t planes = 0;  ///< N·C
  std::array<std::int64_t, 2> size_in{};
  std::array<std::int64_t, 2> size_out{};
  std::array<std::int64_t, 2> kernel{};
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};
};

/// The geometry of any pooling op, from the sizes of its image and of its windows.
template <class Op>
PoolGeometry pool_geometry(const Op& op, DType dtype, const StaticDims& x, const StaticDims& y) {
  return {.dtype = dtype,
          .planes = x[0] * x[1],
          .size_in = {x[2], x[3]},
          .size_out = {y[2], y[3]},
          .kernel = {op.kernel_size[0], op.kernel_size[1]},
          .stride = {op.stride[0], op.stride[1]},
          .padding = {op.padding[0], op.padding[1]}};
}

/// y: `kind` over every window of x. A mean counts padding when `count_padding`.
void pool_forward(ThreadPool& pool, const PoolGeometry& g, ReduceKind kind, bool count_padding,
                  const void* x, void* y);
/// dx: dy added at every window's first maximum.
void max_pool_backward(ThreadPool& pool, const PoolGeometry& g, const void* x, const void* dy,
                       void* dx);
/// What each thread keeps of `thread_scratch` for it.
[[nodiscard]] std::int64_t max_pool_backward_thread_bytes(const PoolGeometry& g);
/// out: v at every window's first maximum of x.
void max_pool_select(ThreadPool& pool, const PoolGeometry& g, const void* x, const void* v,
                     void* out);

}  // namespace ricci::cpu
