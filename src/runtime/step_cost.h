// About how much a step moves and computes: what profiles divide times by.
#pragma once

#include <cstdint>

#include "ricci/schedule/program.h"

namespace ricci::runtime {

struct StepCost {
  std::int64_t bytes = 0;  ///< every buffer once
  std::int64_t flops = 0;  ///< one per arithmetic instruction and element
};

/// Control flow has none of its own: the steps of its bodies have.
[[nodiscard]] StepCost step_cost(const Program& program, const Step& step);

}  // namespace ricci::runtime
