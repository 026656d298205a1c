#include "ricci/op/leaf.h"
#include "ricci/rewrite/cleanup.h"

namespace ricci {
namespace {

using ReadMask = std::vector<std::vector<bool>>;  // per node, per result

// Which results an output depends on. One walk backwards: operands come before their readers.
ReadMask find_read(const Graph& graph) {
  ReadMask read;
  read.reserve(graph.size());
  for (const Node& node : graph.nodes()) read.emplace_back(node.types.size(), false);
  for (const ValueId v : graph.outputs()) read[v.node][v.result] = true;
  for (std::size_t id = graph.size(); id-- > 0;) {
    bool live = false;
    for (const bool r : read[id]) live = live || r;
    if (!live) continue;
    for (const ValueId v : graph.nodes()[id].operands) read[v.node][v.result] = true;
  }
  return read;
}

}  // namespace

PassResult dead_code_elimination(const Graph& graph) {
  const ReadMask read = find_read(graph);
  Rebuilder rebuild(graph);
  bool changed = false;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    bool live = node.is_leaf();
    for (const bool r : read[id]) live = live || r;
    if (!live) {
      changed = true;
      continue;
    }
    const NodeId now = node.bodies.empty()
                           ? rebuild.copy(id)
                           : rebuild.copy(id, map_bodies(node, dead_code_elimination, changed));
    if (node.is_leaf()) continue;
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (!node.wanted[r] || read[id][r]) continue;
      rebuild.to().set_wanted({now, r}, false);
      rebuild.drop({id, r});
      changed = true;
    }
  }
  if (!changed) return unchanged(graph);
  Graph out = rebuild.finish();
  return {std::move(out), rebuild.id_map(), true};
}

}  // namespace ricci
