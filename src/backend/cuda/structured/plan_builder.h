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
  bool shared = false;  ///< others may lie there too: it is read and written in order
};

/// What the blocks of a kernel are given besides registers.
struct BlockRoom {
  std::int64_t shared_bytes = 0;  ///< of what the kernel declares as `shared_memory`
  std::int32_t at_once = 1;       ///< so many blocks are to fit into a multiprocessor's registers
};

class PlanBuilder {
 public:
  /// The shared memory that a block of compute capability 9.0 may ask for: what is planned without
  /// a GPU is planned for that.
  static constexpr std::int64_t HopperShared = 227 * 1024;

  explicit PlanBuilder(const CallStep& step, std::int64_t shared_bytes = HopperShared)
      : step_(step), shared_bytes_(shared_bytes) {}
  /// The most shared memory a block may have.
  [[nodiscard]] std::int64_t shared_bytes() const { return shared_bytes_; }

  [[nodiscard]] const CallStep& step() const { return step_; }
  [[nodiscard]] DType dtype(std::size_t operand) const {
    return step_.operands[operand].type.dtype;
  }
  /// Room for so many bytes until the call is done.
  [[nodiscard]] Place reserve(std::int64_t bytes);
  /// An operand as a row-major array; copied where it is none.
  [[nodiscard]] Place row_major(std::size_t operand);
  /// How many neighbours of a row-major operand, and of the result, can be moved at once where runs
  /// of `run` elements lie together.
  [[nodiscard]] int lanes(std::size_t operand, std::int64_t run) const;

  /// A kernel whose threads each take one of `count` items, `i`, and do what `body` says.
  void for_each(std::int64_t count, std::span<const Parameter> parameters, std::string_view body,
                std::string_view before = {});
  /// A kernel whose blocks do what `body` says. `before` is what stands before it.
  void launch(std::int64_t blocks, std::int32_t threads, std::span<const Parameter> parameters,
              std::string_view body, std::string_view before = {}, BlockRoom room = {});
  void zeros(Place at, std::int64_t bytes);
  void copy(Place to, Place from, std::int64_t bytes);

  CallPlan plan;

 private:
  const CallStep& step_;
  std::int64_t shared_bytes_;
};

/// The bytes of a result, row-major.
[[nodiscard]] std::int64_t bytes_of(const BufferView& view);

}  // namespace ricci::cuda
