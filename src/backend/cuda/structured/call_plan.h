// How a call is served on the GPU: launches of kernels written for its sizes, products by cuBLASLt,
// zeros and copies, one after another. Everything is known beforehand, so a plan can be captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "ricci/compiler/schedule/program.h"

#include "backend/cuda/codegen/kernel_text.h"
#include "backend/cuda/run/code.h"
#include "backend/cuda/run/gpu.h"
#include "backend/cuda/run/memory.h"

namespace ricci::cuda {

inline constexpr std::int64_t VectorBytes = 16;  ///< what kernels read at a time

/// Where a part of a plan reads or writes.
struct Place {
  enum class In : std::uint8_t {
    Operand,
    Result,
    Scratch,
    After,   ///< the buffer of an argument of the kernel behind the call
    Number,  ///< nowhere: the parameter is a number
  };
  In in = In::Operand;
  std::size_t index = 0;    ///< which operand or result: its first element
  std::int64_t offset = 0;  ///< in bytes; or the number
};
[[nodiscard]] inline Place operand(std::size_t k, std::int64_t offset = 0) {
  return {Place::In::Operand, k, offset};
}
[[nodiscard]] inline Place result(std::size_t r, std::int64_t offset = 0) {
  return {Place::In::Result, r, offset};
}
[[nodiscard]] inline Place after(std::int32_t argument, std::int64_t offset = 0) {
  return {Place::In::After, static_cast<std::size_t>(argument), offset};
}
[[nodiscard]] inline Place scratch(std::int64_t offset) { return {Place::In::Scratch, 0, offset}; }

/// A number that differs between launches of the same kernel.
[[nodiscard]] inline Place number(std::int64_t n) { return {Place::In::Number, 0, n}; }

/// A kernel with a pointer or number per place, and then what every kernel is given (see
/// KernelText).
struct CallLaunch {
  KernelText text;
  std::vector<Place> places;
};

struct Zeros {
  Place at;
  std::int64_t bytes = 0;
};

struct PlainCopy {
  Place to;
  Place from;
  std::int64_t bytes = 0;
};

class Multiplication;  // see cublas_product.h
struct LibraryProduct {
  std::shared_ptr<const Multiplication> how;
  Place a;
  Place b;
  Place c;
  Place workspace;
  std::optional<Place> bias = {};
  std::optional<Place> added = {};
  std::optional<Place> inner = {};
};

struct CallPlan {
  std::vector<std::variant<CallLaunch, Zeros, PlainCopy, LibraryProduct>> parts;
  std::int64_t scratch_bytes = 0;
  std::string_view how = "kernel";  ///< in reports
  bool can_fault = false;
  bool has_after = false;  ///< what the call's kernel behind it does is done with the call
};

/// What plans may use beside kernels.
struct Means {
  const Gpu* gpu = nullptr;  ///< null: there is none here, and what is planned does not run
  bool library = false;      ///< of a GPU elsewhere: cuBLASLt is taken to be where it runs
  bool tf32 = false;         ///< products of f32 may be in tf32
  Memory* memory = nullptr;  ///< where products may be tried; null: they are not
  const CodeFolder* folder = nullptr;  ///< where the fastest of them are kept
};

/// Does the GPU have a kernel for a call on operands of these types?
[[nodiscard]] bool serves(const loop::Call& call, std::span<const Type> operands);
/// Nothing for what is served by the host.
[[nodiscard]] std::optional<CallPlan> plan_call(const Program& program, const CallStep& step,
                                                const Means& means = {});

}  // namespace ricci::cuda
