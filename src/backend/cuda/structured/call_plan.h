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
#include "backend/cuda/run/gpu.h"

namespace ricci::cuda {

/// Where a part of a plan reads or writes.
struct Place {
  enum class In : std::uint8_t {
    Operand,
    Result,
    Scratch,
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
};

struct CallPlan {
  std::vector<std::variant<CallLaunch, Zeros, PlainCopy, LibraryProduct>> parts;
  std::int64_t scratch_bytes = 0;
  std::string_view how = "kernel";  ///< in reports
  bool can_fault = false;
};

/// Does the GPU have a kernel for a call on operands of these types?
[[nodiscard]] bool serves(const loop::Call& call, std::span<const Type> operands);
/// Nothing for what is served by the host. `gpu` may be null: then no library is used.
[[nodiscard]] std::optional<CallPlan> plan_call(const Program& program, const CallStep& step,
                                                const Gpu* gpu);

}  // namespace ricci::cuda
