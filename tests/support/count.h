// Counting nodes in tests of passes and transforms.
#pragma once

#include <algorithm>
#include <string_view>

#include "ricci/ir/graph.h"

namespace ricci::testing {

/// Nodes of a graph, bodies left out, whose op goes by a name.
[[nodiscard]] inline std::size_t count(const Graph& graph, std::string_view mnemonic) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [&](const Node& node) { return node.op.mnemonic() == mnemonic; }));
}
template <class T>
[[nodiscard]] std::size_t count_ops(const Graph& graph) {
  return static_cast<std::size_t>(
      std::ranges::count_if(graph.nodes(), [](const Node& node) { return node.op.is<T>(); }));
}
/// The same with bodies, at any depth.
[[nodiscard]] inline std::size_t count_everywhere(const Graph& graph, std::string_view mnemonic) {
  std::size_t total = count(graph, mnemonic);
  for (const Node& node : graph.nodes()) {
    for (const Body& body : node.bodies) total += count_everywhere(*body.graph, mnemonic);
  }
  return total;
}

}  // namespace ricci::testing
