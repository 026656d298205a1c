#include <algorithm>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/op/shape.h"

namespace ricci {
namespace {

bool is_single_element(const Type& type) {
  return std::ranges::all_of(type.dims, [](const Dim& d) { return d.is(1); });
}

// The single element behind one or more `expand`s; the value itself when there is none.
ValueId single_element(const Graph& graph, ValueId v) {
  for (;;) {
    const Node& node = graph.node(v.node);
    if (!node.op.is<op::Expand>() || !is_single_element(graph.type(node.operands[0]))) return v;
    v = node.operands[0];
  }
}

bool gives_same_types(const Graph& graph, const Node& node) {
  std::vector<Type> types;
  for (const ValueId v : node.operands) types.push_back(graph.type(v));
  try {
    return infer_types(node.op, types, {}, &graph.registry()).types == node.types;
  } catch (const Rejection&) {
    return false;  // an element-wise op that does not broadcast
  }
}

// The node's operands with expands taken away where the others still give it its shape.
std::vector<ValueId> peeled_operands(const Graph& graph, Node node) {
  for (ValueId& operand : node.operands) {
    const ValueId whole = operand;
    operand = single_element(graph, whole);
    if (operand != whole && !gives_same_types(graph, node)) operand = whole;
  }
  return node.operands;
}

}  // namespace

PassResult peel_scalar_expands(const Graph& graph) {
  Rebuilder rebuild(graph);
  bool changed = false;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    std::vector<Body> bodies = map_bodies(node, peel_scalar_expands, changed);
    std::vector<ValueId> operands = node.operands;
    if (node.op.has(Trait::Elementwise) && operands.size() > 1) {
      operands = peeled_operands(graph, node);
      changed = changed || operands != node.operands;
    }
    rebuild.copy(id, std::move(bodies), std::move(operands));
  }
  if (!changed) return unchanged(graph);
  Graph out = rebuild.finish();
  return {std::move(out), rebuild.id_map(), true};
}

}  // namespace ricci
