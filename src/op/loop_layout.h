// Where the operands of a loop's gradient are; type rules and kernels read them through this.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ricci/op/control.h"

namespace ricci {

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
