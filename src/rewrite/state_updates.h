// What a program does to state that it keeps: the moments of an optimiser, averages, params.
#pragma once

#include <set>

#include "ricci/ir/graph.h"

namespace ricci {

/// The element-wise nodes that make the next value of an f32 param, and nothing else. Such an
/// output is made of the param's old value by element-wise ops alone; what they read counts as long
/// as it is element-wise, or one number laid out, and read by nothing but them.
[[nodiscard]] std::set<NodeId> state_updates(const Graph& graph);

}  // namespace ricci
