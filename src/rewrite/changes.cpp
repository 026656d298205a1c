#include "rewrite/changes.h"

#include <memory>

namespace ricci {

bool Changes::apply(Change change) {
  if (!change) return false;
  if (all_) change->map = all_->map.then(change->map);
  all_ = std::move(change);
  return true;
}

ChangedBodies::ChangedBodies(const Graph& graph, const std::function<Change(const Graph&)>& pass) {
  if (graph.depth() == 0) return;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    for (std::size_t b = 0; b < node.bodies.size(); ++b) {
      Change inner = pass(*node.bodies[b].graph);
      if (!inner) continue;
      const auto at = changed_.try_emplace(id, node.bodies).first;
      at->second[b].graph = std::make_shared<const Graph>(std::move(inner->graph));
    }
  }
}

const std::vector<Body>& ChangedBodies::of(NodeId id, const Node& node) const {
  if (!any()) return node.bodies;
  const auto at = changed_.find(id);
  return at == changed_.end() ? node.bodies : at->second;
}

PassResult finished(Rebuilder& rebuild) {
  Graph out = rebuild.finish();
  return {std::move(out), rebuild.id_map(), true};
}

PassResult or_unchanged(const Graph& graph, Change change) {
  return change ? std::move(*change) : unchanged(graph);
}

}  // namespace ricci
