#include "transform/dependence.h"

#include <algorithm>

#include "ricci/op/table.h"
#include "ricci/rule/vjp.h"

#include "rule/control/influence.h"

namespace ricci {
namespace {

bool any_of(const std::vector<bool>& mask) {
  return std::ranges::any_of(mask, [](bool b) { return b; });
}

// [operand][result], or nothing when every operand may influence every result.
std::vector<std::vector<bool>> influence_in(const Node& node) {
  if (node.bodies.empty()) return {};
  return rule::influence_of(node, influence_on_outputs);
}

}  // namespace

void for_each_link(const Graph& graph, const Node& node,
                   const std::function<void(std::size_t k, std::size_t r)>& visit) {
  if (node.operands.empty() || descriptor(node.op.kind()).vjp == RuleSource::Zero) return;
  const auto influence = influence_in(node);
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const Type& type = graph.type(node.operands[k]);
    if (!carries_derivative(graph.registry(), node, k, type)) continue;
    for (std::size_t r = 0; r < node.types.size(); ++r) {
      if (!is_differentiable(node.types[r].dtype)) continue;
      if (influence.empty() || influence[k][r]) visit(k, r);
    }
  }
}

Dependence::Dependence(const Graph& graph, std::span<const ValueId> from) {
  for (const Node& node : graph.nodes()) {
    marks_.emplace_back(node.types.size(), false);
    operands_.emplace_back(node.operands.size(), false);
  }
  for (const ValueId v : from) marks_[v.node][v.result] = true;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    const bool reached = std::ranges::any_of(node.operands, [&](ValueId v) { return (*this)(v); });
    if (!reached) continue;
    for_each_link(graph, node, [&](std::size_t k, std::size_t r) {
      if (!(*this)(node.operands[k])) return;
      operands_[id][k] = true;
      marks_[id][r] = true;
    });
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

std::vector<std::vector<bool>> influence_on_outputs(const Graph& graph) {
  const std::vector<NodeId> inputs = graph.inputs();
  // Per value, the inputs that have a part in it.
  std::vector<std::vector<std::vector<bool>>> sources(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    sources[id].assign(node.types.size(), std::vector<bool>(inputs.size(), false));
    for_each_link(graph, node, [&](std::size_t k, std::size_t r) {
      const ValueId v = node.operands[k];
      const std::vector<bool>& from = sources[v.node][v.result];
      for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i]) sources[id][r][i] = true;
      }
    });
    const auto at = std::ranges::find(inputs, id);
    if (at == inputs.end() || !is_differentiable(node.types[0].dtype)) continue;
    sources[id][0][static_cast<std::size_t>(at - inputs.begin())] = true;
  }
  std::vector<std::vector<bool>> out(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const ValueId v : graph.outputs()) out[i].push_back(sources[v.node][v.result][i]);
  }
  return out;
}

}  // namespace ricci
