// Examples of a batch that are under way while others are not.
#pragma once

#include "rule/derivative_parts.h"

namespace ricci::rule {

/// Examples that are under way; the others run along on the values of one that is, so that nothing
/// is computed, or differentiated, where an example never went.
class Lanes {
 public:
  /// `active` is bool[B].
  explicit Lanes(Value active) : active_(active) {}

  [[nodiscard]] Value active() const { return active_; }
  /// Is any example under way? bool[]
  [[nodiscard]] Value any() const;
  /// A batched value with the rows of idle examples replaced.
  [[nodiscard]] Value safe(Value batched) const;
  /// Row by row: `yes` for active examples, `no` for idle ones.
  [[nodiscard]] Value choose(Value yes, Value no) const;

 private:
  // The index of an active example, where there is one.
  [[nodiscard]] Value leader() const;

  Value active_;
};

/// bool[B] from flags of any dtype [B, …]: is every flag of an example non-zero?
[[nodiscard]] Value all_set(Value flags);

}  // namespace ricci::rule
