// Which nodes give the same bits on every device, bodies looked into.
#pragma once

#include "ricci/ir/graph.h"

namespace ricci::testing {

[[nodiscard]] bool is_loop_or_branch(const Node& node);
/// Control flow is as exact as its bodies.
[[nodiscard]] bool node_is_exact(const Graph& graph, const Node& node);

}  // namespace ricci::testing
