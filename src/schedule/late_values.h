// Values that wait a long time, such as the derivative of an activation, which is there with the
// activation and read when the gradient comes back. Where they take more memory than what they are
// made of, and that is there anyway, they are made when they are read.
#pragma once

#include "ricci/compiler/schedule/target.h"

#include "rewrite/changes.h"

namespace ricci::schedule {

/// Gives element-wise nodes that wait for a call copies of such operands as do not wait for it.
[[nodiscard]] Change late_values(const Graph& graph, const Costs& costs);

}  // namespace ricci::schedule
