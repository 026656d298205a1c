// Where the operands of a scan and of the loops' gradients are; rules, kernels and back ends read
// them through this.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ricci/op/control.h"

namespace ricci {

/// A scan: operands are carries, bcasts, then xs; results are the last carries or their
/// trajectories, then what is stacked.
struct ScanLayout {
  std::size_t carries;
  std::size_t bcasts;
  std::size_t xs;
  bool trajectory;

  explicit ScanLayout(const op::Scan& op)
      : carries(static_cast<std::size_t>(op.num_carry)),
        bcasts(static_cast<std::size_t>(op.num_bcast)),
        xs(static_cast<std::size_t>(op.num_xs)),
        trajectory(op.save_trajectory) {}
  [[nodiscard]] std::size_t first_bcast() const noexcept { return carries; }
  [[nodiscard]] std::size_t first_x() const noexcept { return carries + bcasts; }
  [[nodiscard]] std::size_t operands() const noexcept { return first_x() + xs; }
  /// Is an operand the same in every step?
  [[nodiscard]] bool is_bcast(std::size_t k) const noexcept {
    return k >= first_bcast() && k < first_x();
  }
  /// Does a step see a row of an operand?
  [[nodiscard]] bool is_x(std::size_t k) const noexcept { return k >= first_x(); }
  /// Has a result a row for each step, or for each that is kept?
  [[nodiscard]] bool is_stacked(std::size_t r) const noexcept { return r >= carries || trajectory; }

  template <class T>
  [[nodiscard]] std::vector<T> carries_of(std::span<const T> all) const {
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first_bcast())};
  }
  template <class T>
  [[nodiscard]] std::vector<T> bcasts_of(std::span<const T> all) const {
    return {all.begin() + static_cast<std::ptrdiff_t>(first_bcast()),
            all.begin() + static_cast<std::ptrdiff_t>(first_x())};
  }
  template <class T>
  [[nodiscard]] std::vector<T> xs_of(std::span<const T> all) const {
    return {all.begin() + static_cast<std::ptrdiff_t>(first_x()), all.end()};
  }
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
