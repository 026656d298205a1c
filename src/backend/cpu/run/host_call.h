// Kernels written in C++, for calls that are neither loops the code generator makes nor matrix
// work: sorting, scatters, sampling, solves, recurrences. They need neither LLVM nor the
// graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/compiler/loop/call.h"
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

/// One call: its role, operands (strided in any way) and results (row-major, not overlapping any
/// operand).
struct HostArguments {
  const loop::Call& call;
  std::string_view name;  ///< of what it computes, for messages
  std::span<const ArrayView> operands;
  std::span<const ArrayView> results;
  ThreadPool& pool;
  std::uint64_t seed = 0;  ///< the run's global seed, for random ops
  std::span<std::byte> scratch =
      {};  ///< as many bytes as `HostKernel::scratch` asked for, 64-aligned

  /// Its role, which is known.
  template <class Role>
  [[nodiscard]] const Role& as() const {
    return std::get<Role>(call);
  }
  /// Leaves the kernel with an error; the runtime adds its place.
  [[noreturn]] void fail(ErrorCode code, std::string message, std::string help = {}) const;
};

struct HostKernel {
  void (*run)(const HostArguments& call) = nullptr;
  /// Bytes of scratch the kernel needs for these shapes (data pointers are null); may be null.
  std::int64_t (*scratch)(const HostArguments& call) = nullptr;
  /// What each thread keeps of `thread_scratch` for it; may be null.
  std::int64_t (*thread_bytes)(const HostArguments& call) = nullptr;
};

/// The kernel for a role; `run` is null when there is none.
[[nodiscard]] HostKernel host_kernel(const loop::Call& call) noexcept;

}  // namespace ricci::cpu
