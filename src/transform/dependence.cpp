#include "transform/dependence.h"

#include <algorithm>

#include "ricci/op/table.h"
#include "ricci/rule/vjp.h"

namespace ricci {

Dependence::Dependence(const Graph& graph, std::span<const ValueId> from) {
  marks_.reserve(graph.size());
  for (const Node& node : graph.nodes()) marks_.emplace_back(node.types.size(), false);
  for (const ValueId v : from) marks_[v.node][v.result] = true;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (node.operands.empty()) continue;
    if (descriptor(node.op.kind()).vjp == RuleSource::Zero) continue;
    if (!std::ranges::any_of(operands(graph, id), [](bool b) { return b; })) continue;
    for (std::size_t r = 0; r < node.types.size(); ++r) {
      if (has_derivative(node.types[r].dtype)) marks_[id][r] = true;
    }
  }
}

bool Dependence::any(NodeId node) const {
  return std::ranges::any_of(marks_[node], [](bool b) { return b; });
}

std::vector<bool> Dependence::operands(const Graph& graph, NodeId id) const {
  const Node& node = graph.nodes()[id];
  std::vector<bool> out;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const ValueId v = node.operands[k];
    out.push_back((*this)(v) && carries_derivative(graph.registry(), node, k, graph.type(v)));
  }
  return out;
}

}  // namespace ricci
