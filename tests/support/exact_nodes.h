// Which nodes give the same bits on every device, bodies looked into, and what the others compute
// with.
#pragma once

#include <cstddef>

#include "ricci/ir/graph.h"

namespace ricci::testing {

[[nodiscard]] bool is_loop_or_branch(const Node& node);
/// Is an operand a number that an op computes with, rather than one that says where or how many: an
/// index, a size? Such may be floats, and nothing rounds them.
[[nodiscard]] bool computes_with(const Graph& graph, const Node& node, std::size_t operand);
/// Control flow is as exact as its bodies.
[[nodiscard]] bool node_is_exact(const Graph& graph, const Node& node);

}  // namespace ricci::testing
