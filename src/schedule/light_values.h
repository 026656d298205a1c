// Values that take more memory than they are made of, such as masks of places and biases by
// distance: a few instructions on counters, numbers and arrays much smaller than they are. Each
// reader computes one for itself, in its own shape, and nothing is stored.
#pragma once

#include "ricci/compiler/schedule/target.h"

#include "rewrite/changes.h"

namespace ricci::schedule {

/// Is a node one instruction per element that can go wrong at none of them?
[[nodiscard]] bool is_plain_instruction(const Graph& graph, const Node& node);

/// Gives element-wise nodes and reductions copies of such operands, where others read these too or
/// they are repeated along an axis.
[[nodiscard]] Change light_values(const Graph& graph, const Costs& costs);

}  // namespace ricci::schedule
