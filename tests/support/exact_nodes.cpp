#include "support/exact_nodes.h"

#include <algorithm>
#include <vector>

#include "ricci/compiler/rule/vjp.h"
#include "ricci/op/ops.h"

#include "rewrite/exact.h"

namespace ricci::testing {
namespace {

bool is_whole(const Type& type) { return !is_differentiable(type.dtype); }

bool all_exact(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(),
                             [&](const Node& node) { return node_is_exact(graph, node); });
}

}  // namespace

bool is_loop_or_branch(const Node& node) {
  return node.op.is<op::If>() || node.op.is<op::Scan>() || node.op.is<op::While>();
}

bool computes_with(const Graph& graph, const Node& node, std::size_t operand) {
  const auto carries = [&](std::size_t k) {
    return carries_derivative(graph.registry(), node, k, graph.type(node.operands[k]));
  };
  if (carries(operand)) return true;
  // Ops without a derivative say nothing about their operands.
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    if (carries(k)) return false;
  }
  return true;
}

bool node_is_exact(const Graph& graph, const Node& node) {
  std::vector<Type> types;
  for (const ValueId v : node.operands) types.push_back(graph.type(v));
  if (is_loop_or_branch(node)) {
    return std::ranges::all_of(node.bodies, [](const Body& b) { return all_exact(*b.graph); });
  }
  if (!node.bodies.empty()) return false;
  if (node.operands.empty()) return !node.op.has(Trait::Random);
  if (std::ranges::all_of(types, is_whole) && std::ranges::all_of(node.types, is_whole)) {
    return !node.op.has(Trait::Random);
  }
  return is_exact(node.op, types);
}

}  // namespace ricci::testing
