#include "transform/dependence.h"

#include <algorithm>

#include "rule/control/influence.h"

namespace ricci {
namespace {

bool any_of(const std::vector<bool>& mask) {
  return std::ranges::any_of(mask, [](bool b) { return b; });
}

void join_marks(std::vector<bool>& to, const std::vector<bool>& more) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] || more[i];
}

}  // namespace

Dependence::Dependence(const Graph& graph, std::span<const ValueId> from) {
  for (const Node& node : graph.nodes()) {
    marks_.emplace_back(node.types.size(), false);
    operands_.emplace_back(node.operands.size(), false);
  }
  for (const ValueId v : from) marks_[v.node][v.result] = true;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    std::vector<bool> marked;
    for (const ValueId v : node.operands) marked.push_back((*this)(v));
    if (!any_of(marked)) continue;
    const std::vector<bool> reached = rule::reached_results(graph, node, marked);
    if (!any_of(reached)) continue;
    join_marks(marks_[id], reached);
    const std::vector<bool> all(node.types.size(), true);
    operands_[id] = rule::leading_operands(graph, node, all);
    for (std::size_t k = 0; k < marked.size(); ++k)
      operands_[id][k] = operands_[id][k] && marked[k];
  }
}

bool Dependence::any(NodeId node) const { return any_of(marks_[node]); }
bool Dependence::passes(NodeId node) const { return any_of(operands_[node]); }

std::vector<bool> leading_to(const Graph& graph, std::span<const ValueId> values) {
  std::vector<bool> marks(graph.size());
  for (const ValueId v : values) marks[v.node] = true;
  for (NodeId id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    if (!marks[id]) continue;
    for (const ValueId v : graph.nodes()[id].operands) marks[v.node] = true;
  }
  return marks;
}

}  // namespace ricci
