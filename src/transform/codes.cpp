#include "transform/codes.h"

#include <set>

#include "ricci/compiler/rule/vjp.h"

namespace ricci {
namespace {

bool moves(const Node& node) { return node.op.has(Trait::DataMovement); }

bool carries(const Graph& graph, const Node& node, std::size_t k) {
  return carries_derivative(graph.registry(), node, k, graph.type(node.operands[k]));
}

// Does an op make it as a code, or move what one makes?
bool is_made_as_code(const Graph& graph, ValueId v) {
  const Node& node = graph.node(v.node);
  if (!moves(node)) return gives_derivative(node, v.result);
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    if (carries(graph, node, k) && is_made_as_code(graph, node.operands[k])) return true;
  }
  return false;
}

// Does an op take it as a code, or move it to one that does?
bool is_taken_as_code(const Graph& graph, ValueId v) {
  std::set<ValueId> same{v};
  for (NodeId id = v.node + 1; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (!same.contains(node.operands[k]) || !carries(graph, node, k)) continue;
      if (!moves(node)) return true;
      same.insert({id, 0});
    }
  }
  return false;
}

}  // namespace

bool has_derivative(const Graph& graph, ValueId v) {
  const DType dtype = graph.type(v).dtype;
  if (!is_int(dtype)) return is_differentiable(dtype);
  return is_made_as_code(graph, v) || is_taken_as_code(graph, v);
}

Type type_of_tangent(const Graph& graph, ValueId v) {
  return has_derivative(graph, v) ? tangent_type(graph.type(v)) : graph.type(v);
}

}  // namespace ricci
