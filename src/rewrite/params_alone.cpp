#include "rewrite/params_alone.h"

#include <algorithm>

#include "ricci/op/ops.h"

namespace ricci {

std::vector<bool> params_alone(const Graph& graph) {
  std::vector<bool> out(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (node.op.is<op::Param>() || node.op.is<op::Constant>()) {
      out[id] = true;
      continue;
    }
    const bool plain = !node.is_leaf() && node.bodies.empty() && !node.operands.empty() &&
                       !node.op.has(Trait::Random);
    out[id] = plain && std::ranges::all_of(node.operands, [&](ValueId v) { return out[v.node]; });
  }
  return out;
}

}  // namespace ricci
