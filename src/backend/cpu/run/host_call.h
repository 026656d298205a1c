// Kernels written in C++, for ops that are neither loops the code generator makes nor matrix work:
// sorting, scatters, random numbers, solves, recurrences. They need neither LLVM nor the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ricci/device/thread_pool.h"
#include "ricci/op/op.h"
#include "ricci/support/error.h"
#include "ricci/type/dtype.h"

namespace ricci::cpu {

/// An array in memory. Element [i, j, …] is at data + (i·strides[0] + j·strides[1] + …)·size.
struct ArrayView {
  std::byte* data = nullptr;  ///< null: an optional operand left out, or a result nobody wants
  DType dtype = DType::F32;
  std::span<const std::int64_t> dims;
  std::span<const std::int64_t> strides;  ///< in elements; 0 and negative ones are legal

  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return reinterpret_cast<T*>(data);
  }
};

/// One call: the op with its attributes, operands (strided in any way) and results (row-major,
/// not overlapping any operand).
struct HostCall {
  const Op& op;
  std::span<const ArrayView> operands;
  std::span<const ArrayView> results;
  ThreadPool& pool;
  std::uint64_t seed = 0;  ///< the run's global seed, for random ops
  std::span<std::byte> scratch =
      {};  ///< as many bytes as `HostKernel::scratch` asked for, 64-aligned

  /// Leaves the kernel with an error; the runtime adds the op and its place.
  [[noreturn]] void fail(ErrorCode code, std::string message, std::string help = {}) const;
};

struct HostKernel {
  void (*run)(const HostCall& call) = nullptr;
  /// Bytes of scratch the kernel needs for these shapes (data pointers are null); may be null.
  std::int64_t (*scratch)(const HostCall& call) = nullptr;
  /// What each thread keeps of `thread_scratch` for it; may be null.
  std::int64_t (*thread_bytes)(const HostCall& call) = nullptr;
};

/// The kernel for a kind of op; `run` is null when there is none.
[[nodiscard]] HostKernel host_kernel(OpKind kind) noexcept;

}  // namespace ricci::cpu
