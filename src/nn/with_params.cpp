#include "nn/with_params.h"

#include <utility>

#include "ricci/ir/rebuild.h"

namespace ricci::detail {

Graph with_params(const Graph& graph, std::size_t params, const std::vector<std::string>& others,
                  std::optional<NodeId> left_out) {
  Graph out(graph.name());
  IdMap map(graph);
  std::size_t seen = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& n = graph.node(id);
    if (n.is_leaf()) {
      const std::size_t leaf = seen++;
      if (left_out == id) continue;
      const bool is_named = leaf >= params && leaf - params < others.size();
      const std::string& name = is_named ? others[leaf - params] : *n.leaf_name();
      const Value v = leaf < params ? out.param(name, n.types[0]) : out.input(name, n.types[0]);
      map.set({id, 0}, v.id());
      continue;
    }
    Node copy = n;
    for (ValueId& v : copy.operands) v = *map(v);
    const NodeId now = out.append(std::move(copy));
    for (std::uint32_t r = 0; r < n.types.size(); ++r) map.set({id, r}, {now, r});
  }
  std::vector<ValueId> outputs;
  for (const ValueId v : graph.outputs()) outputs.push_back(*map(v));
  out.set_outputs(std::move(outputs));
  return out;
}

}  // namespace ricci::detail
