#include "runner/leaves.h"

#include "ricci/op/leaf.h"

namespace ricci::bench {

std::vector<Leaf> leaves_of(const Graph& graph) {
  std::vector<Leaf> leaves;
  for (const NodeId id : graph.inputs()) {
    const Node& node = graph.node(id);
    leaves.push_back({node.op.as<op::Input>()->name, node.types[0]});
  }
  for (const NodeId id : graph.params()) {
    const Node& node = graph.node(id);
    leaves.push_back({node.op.as<op::Param>()->name, node.types[0]});
  }
  return leaves;
}

std::size_t byte_size(const Type& type) {
  return static_cast<std::size_t>(type.numel().value() * size_of(type.dtype));
}

}  // namespace ricci::bench
