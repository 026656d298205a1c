// Plans put together: scratch that is handed out, kernels from source text, operands as row-major
// arrays wherever they lie.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/structured/call_plan.h"

namespace ricci::cuda {

/// A pointer of a kernel's parameters: `const float* x`; or a number, `i64 x`, whatever its dtype.
struct Parameter {
  Place place;
  DType dtype = DType::F32;
  std::string_view name;
  bool written = false;
};

class PlanBuilder {
 public:
  explicit PlanBuilder(const CallStep& step) : step_(step) {}

  [[nodiscard]] const CallStep& step() const { return step_; }
  [[nodiscard]] DType dtype(std::size_t operand) const {
    return step_.operands[operand].type.dtype;
  }
  /// Room for so many bytes until the call is done.
  [[nodiscard]] Place reserve(std::int64_t bytes);
  /// An operand as a row-major array; copied where it is none.
  [[nodiscard]] Place row_major(std::size_t operand);

  /// A kernel whose threads each take one of `count` items, `i`, and do what `body` says.
  void for_each(std::int64_t count, std::span<const Parameter> parameters, std::string_view body,
                std::string_view before = {});
  /// A kernel whose blocks do what `body` says. `before` is what stands before it; `shared_bytes`
  /// of `shared_memory` are beside what the body declares.
  void launch(std::int64_t blocks, std::int32_t threads, std::span<const Parameter> parameters,
              std::string_view body, std::string_view before = {}, std::int64_t shared_bytes = 0);
  void zeros(Place at, std::int64_t bytes);
  void copy(Place to, Place from, std::int64_t bytes);

  CallPlan plan;

 private:
  const CallStep& step_;
};

/// The bytes of a result, row-major.
[[nodiscard]] std::int64_t bytes_of(const BufferView& view);

}  // namespace ricci::cuda
