// Where the operands of a scan and of the loops' gradients are; rules, kernels and back ends read
// them through this.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ricci/op/control.h"

namespace ricci {

/// What a step of a loop takes: carries, bcasts, then rows of xs.
struct StepLayout {
  std::size_t carries = 0;
  std::size_t bcasts = 0;
  std::size_t xs = 0;

  [[nodiscard]] std::size_t first_bcast() const noexcept { return carries; }
  [[nodiscard]] std::size_t first_x() const noexcept { return carries + bcasts; }
  [[nodiscard]] std::size_t operands() const noexcept { return first_x() + xs; }
  /// Are there as many? Counts from text may be so large that their sum overflows.
  [[nodiscard]] bool is_of(std::size_t given) const noexcept {
    return carries <= given && bcasts <= given - carries && xs == given - carries - bcasts;
  }
  /// Is an operand the same in every step?
  [[nodiscard]] bool is_bcast(std::size_t k) const noexcept {
    return k >= first_bcast() && k < first_x();
  }
  /// Does a step see a row of an operand?
  [[nodiscard]] bool is_x(std::size_t k) const noexcept { return k >= first_x(); }
};

/// The operands of a step by what they are.
template <class T>
struct StepOperands {
  std::vector<T> carries;
  std::vector<T> bcasts;
  std::vector<T> xs;

  StepOperands(const StepLayout& layout, std::span<const T> all) {
    const auto part = [&](std::size_t first, std::size_t end) {
      return std::vector<T>(all.begin() + static_cast<std::ptrdiff_t>(first),
                            all.begin() + static_cast<std::ptrdiff_t>(end));
    };
    carries = part(0, layout.first_bcast());
    bcasts = part(layout.first_bcast(), layout.first_x());
    xs = part(layout.first_x(), all.size());
  }
};

/// A scan: operands are those of a step, with rows of xs stacked; results are the last carries or
/// their trajectories, then what is stacked.
struct ScanLayout : StepLayout {
  bool trajectory;

  explicit ScanLayout(const op::Scan& op)
      : StepLayout{static_cast<std::size_t>(op.num_carry), static_cast<std::size_t>(op.num_bcast),
                   static_cast<std::size_t>(op.num_xs)},
        trajectory(op.save_trajectory) {}
  /// Has a result a row for each step, or for each that is kept?
  [[nodiscard]] bool is_stacked(std::size_t r) const noexcept { return r >= carries || trajectory; }
};

/// The gradient of a loop.
struct LoopLayout {
  std::size_t carries = 0;
  std::size_t bcasts = 0;
  std::size_t xs = 0;
  std::size_t saved = 0;      ///< stacked inner values of the steps, behind the xs
  std::size_t counts = 0;     ///< 1 when a trip count stands between the kept rows and upstreams
  std::vector<bool> present;  ///< one per output of the loop's body, carries first

  [[nodiscard]] std::size_t kept(std::size_t carry) const noexcept { return carries + carry; }
  [[nodiscard]] std::size_t trip_count() const noexcept { return 2 * carries; }
  /// The operand with the cotangent of a body output; nothing when it is absent.
  [[nodiscard]] std::optional<std::size_t> upstream(std::size_t output) const;
  [[nodiscard]] std::size_t upstreams() const;
  [[nodiscard]] std::size_t first_bcast() const { return 2 * carries + counts + upstreams(); }
  [[nodiscard]] std::size_t first_x() const { return first_bcast() + bcasts; }
  [[nodiscard]] std::size_t first_saved() const { return first_x() + xs; }
  [[nodiscard]] std::size_t operands() const { return first_saved() + saved; }

  /// What a step of the loop itself takes; one of its gradient's the saved values behind that.
  [[nodiscard]] StepLayout step() const noexcept { return {carries, bcasts, xs}; }
  [[nodiscard]] std::size_t gradient_inputs() const noexcept { return step().operands() + saved; }
  /// The operand with input k of such a step.
  [[nodiscard]] std::size_t operand_of(std::size_t k) const {
    return k < carries ? k : first_bcast() + (k - carries);
  }
  /// The input of such a step that an operand from the first bcast on is for.
  [[nodiscard]] std::size_t input_of(std::size_t operand) const {
    return carries + (operand - first_bcast());
  }
};

/// Nothing when the operands cannot be laid out as the attributes say.
[[nodiscard]] std::optional<LoopLayout> layout_of(const op::ScanBackward& op,
                                                  std::span<const Type> operands);
[[nodiscard]] std::optional<LoopLayout> layout_of(const op::WhileBackward& op,
                                                  std::span<const Type> operands);

/// Trips from one tape row to the next: ⌈max_iterations/num_checkpoints⌉.
[[nodiscard]] constexpr std::int64_t tape_stride(std::int64_t max_iterations,
                                                 std::int64_t num_checkpoints) {
  if (num_checkpoints == 0 || max_iterations == 0) return 1;
  return (max_iterations - 1) / num_checkpoints + 1;
}

}  // namespace ricci
