// Random draws, in a node or in what it runs.
#pragma once

#include <algorithm>

#include "ricci/ir/graph.h"

namespace ricci {

/// Does the node, or a body of it, draw numbers?
[[nodiscard]] inline bool draws_numbers(const Node& node) {
  if (node.op.has(Trait::Random)) return true;
  return std::ranges::any_of(node.bodies, [](const Body& body) {
    return std::ranges::any_of(body.graph->nodes(), draws_numbers);
  });
}

}  // namespace ricci
