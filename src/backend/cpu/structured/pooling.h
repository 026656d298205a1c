// Pooling over windows of row-major images [N, C, H, W], parallel over planes.
#pragma once

#include <array>
#include <cstdint>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/compiler/loop/call.h"
#include "ricci/type/dtype.h"
#include "ricci/type/type.h"

namespace ricci::cpu {

/// y: what the windows of x are combined to.
void pool_forward(ThreadPool& pool, const loop::Pooling& g, const void* x, void* y);
/// dx: dy added at every window's first maximum.
void max_pool_backward(ThreadPool& pool, const loop::Pooling& g, const void* x, const void* dy,
                       void* dx);
/// What each thread keeps of `thread_scratch` for it.
[[nodiscard]] std::int64_t max_pool_backward_thread_bytes(const loop::Pooling& g);
/// out: v at every window's first maximum of x.
void max_pool_select(ThreadPool& pool, const loop::Pooling& g, const void* x, const void* v,
                     void* out);

}  // namespace ricci::cpu
