#include "rewrite/fusions.h"

namespace ricci {
namespace {

class FusedRebuild {
 public:
  FusedRebuild(const Graph& graph, const std::vector<Fusion>& fusions, const ChangedBodies& bodies,
               std::string_view pass)
      : graph_(graph), bodies_(bodies), pass_(pass), rebuild_(graph), at_(graph.size(), nullptr) {
    for (const Fusion& f : fusions) at_[f.at] = &f;
  }

  PassResult run() {
    for (const NodeId id : graph_.leaves()) rebuild_.copy(id);
    for (NodeId id = 0; id < graph_.size(); ++id) {
      if (at_[id] != nullptr) make(*at_[id]);
      // What came out of a fusion is not computed again; a node with more results is, for those.
      if (!all_there(id)) rebuild_.copy(id, bodies_.of(id, graph_.node(id)));
    }
    return finished(rebuild_);
  }

 private:
  [[nodiscard]] bool all_there(NodeId id) const {
    const Node& node = graph_.node(id);
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (node.wanted[r] && !rebuild_.has({id, r})) return false;
    }
    return !node.types.empty();
  }

  void make(const Fusion& fusion) {
    const Node& node = graph_.node(fusion.at);
    Provenance from = node.provenance ? *node.provenance : Provenance{};
    if (from.origin.empty()) from.origin = pass_;
    const ProvenanceScope scope(rebuild_.to(), from);
    const std::vector<Value> made = fusion.build(rebuild_);
    check_internal(made.size() == fusion.gives.size(), "a fusion gives what it says");
    for (std::size_t i = 0; i < made.size(); ++i) {
      const ValueId old = fusion.gives[i];
      check_internal(made[i].type() == graph_.type(old), "a fusion keeps the types of results");
      rebuild_.map(old, made[i]);
      const std::string& name = graph_.node(old.node).names[old.result];
      if (!name.empty()) made[i].named(name);
    }
  }

  const Graph& graph_;
  const ChangedBodies& bodies_;
  std::string_view pass_;
  Rebuilder rebuild_;
  std::vector<const Fusion*> at_;
};

}  // namespace

PassResult make_fusions(const Graph& graph, std::string_view pass, const FindFusions& find) {
  // What is dead reads nothing: neither what was so before nor what is joined here.
  Changes changes(graph);
  changes.apply(drop_dead_code(graph));
  const Graph& live = changes.graph();
  const ChangedBodies bodies(live, [&](const Graph& body) -> Change {
    PassResult inner = make_fusions(body, pass, find);
    if (!inner.changed) return std::nullopt;
    return inner;
  });
  const std::vector<Fusion> fusions = find(live);
  if (fusions.empty() && !bodies.any()) return unchanged(graph);
  changes.apply(FusedRebuild(live, fusions, bodies, pass).run());
  changes.apply(drop_dead_code(changes.graph()));
  return or_unchanged(graph, changes.take());
}

bool is_binary_node(const Node& node, BinaryKind kind) {
  const auto* binary = node.op.as<op::Binary>();
  return binary != nullptr && binary->kind == kind;
}

bool is_plain_sum(const Uses& uses, const Node& node) {
  return is_binary_node(node, BinaryKind::Add) && uses.type(node.operands[0]) == node.types[0] &&
         uses.type(node.operands[1]) == node.types[0];
}

bool is_last_axis(const Axis& axis, const Type& type) { return axis.index() + 1 == type.rank(); }

}  // namespace ricci
