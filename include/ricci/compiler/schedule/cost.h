// What a step of a program costs, by its shapes alone: how much is computed and how much memory is
// walked over. For reports and profiles; nothing is decided by it.
#pragma once

#include "ricci/compiler/schedule/program.h"

namespace ricci {

struct StepCost {
  double flops = 0;  ///< arithmetic of any dtype; a function such as exp counts as one
  double bytes_read = 0;
  double bytes_written = 0;

  [[nodiscard]] double bytes() const { return bytes_read + bytes_written; }
  StepCost& operator+=(const StepCost& other);
};

/// Elements read again by the same step are counted once. Branches count as the dearest one, loops
/// as their length, and a loop without a bound as one trip.
[[nodiscard]] StepCost estimate_cost(const Program& program, const Step& step);
[[nodiscard]] StepCost estimate_cost(const Program& program);

}  // namespace ricci
