#include "rewrite/state_updates.h"

#include <algorithm>
#include <map>

namespace ricci {
namespace {

bool is_elementwise(const Node& node) {
  return !node.is_leaf() && node.bodies.empty() && node.op.has(Trait::Elementwise);
}

// One number as an array of it.
bool lays_out_one(const Graph& graph, const Node& node) {
  return node.op.has(Trait::DataMovement) && node.operands.size() == 1 &&
         graph.type(node.operands[0]).numel() == 1;
}

// Values that are element-wise functions of an f32 param of their own type, and those params.
std::set<ValueId> made_of_params(const Graph& graph) {
  std::set<ValueId> made;
  for (const NodeId id : graph.params()) {
    if (graph.type({id, 0}).dtype == DType::F32) made.insert({id, 0});
  }
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (!is_elementwise(node)) continue;
    const bool reached = std::ranges::any_of(node.operands, [&](ValueId v) {
      return made.contains(v) && graph.type(v) == node.types[0];
    });
    if (reached) made.insert({id, 0});
  }
  return made;
}

}  // namespace

std::set<NodeId> state_updates(const Graph& graph) {
  const std::set<ValueId> made = made_of_params(graph);
  std::set<NodeId> begun;
  for (const ValueId v : graph.outputs()) {
    if (made.contains(v) && !graph.node(v.node).is_leaf()) begun.insert(v.node);
  }
  if (begun.empty()) return {};
  // How often a node is read, and how often by what is found; outputs read it too.
  std::map<NodeId, std::size_t> readers;
  std::map<NodeId, std::size_t> found_readers;
  for (const Node& node : graph.nodes()) {
    for (const ValueId v : node.operands) ++readers[v.node];
  }
  for (const ValueId v : graph.outputs()) {
    if (!begun.contains(v.node)) ++readers[v.node];
  }
  std::set<NodeId> found;
  for (auto id = static_cast<NodeId>(graph.size()); id-- > 0;) {
    const Node& node = graph.nodes()[id];
    const bool alone = readers[id] == found_readers[id] && (readers[id] > 0 || begun.contains(id));
    if (!alone || !(is_elementwise(node) || lays_out_one(graph, node))) continue;
    found.insert(id);
    for (const ValueId v : node.operands) ++found_readers[v.node];
  }
  return found;
}

}  // namespace ricci
