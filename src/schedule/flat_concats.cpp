#include "schedule/flat_concats.h"

#include <algorithm>

#include "ricci/ir/rebuild.h"
#include "ricci/op/ops.h"

namespace ricci::schedule {
namespace {

class Flattener {
 public:
  explicit Flattener(const Graph& graph) : graph_(graph), inside_(graph.size(), false) {
    std::vector<std::size_t> uses(graph.size(), 0);
    for (const Node& node : graph.nodes()) {
      for (const ValueId v : node.operands) ++uses[v.node];
    }
    for (const ValueId v : graph.outputs()) ++uses[v.node];
    for (const Node& node : graph.nodes()) {
      if (!node.op.is<op::Concat>()) continue;
      for (const ValueId v : node.operands) {
        if (uses[v.node] != 1 || graph.node(v.node).op != node.op) continue;
        inside_[v.node] = any_ = true;
      }
    }
  }

  Change run() {
    const ChangedBodies bodies(graph_, [](const Graph& body) { return flat_concats(body); });
    if (!bodies.any() && !any_) return std::nullopt;
    Rebuilder rebuild(graph_);
    std::vector<std::vector<ValueId>> parts(graph_.size());  // of what is inside another
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      const auto is_inside = [&](ValueId v) { return inside_[v.node]; };
      if (!inside_[id] && std::ranges::none_of(node.operands, is_inside)) {
        rebuild.copy(id, bodies.of(id, node));
        continue;
      }
      std::vector<ValueId> all;
      for (const ValueId v : node.operands) {
        if (!is_inside(v)) {
          all.push_back(v);
        } else if (all.empty()) {
          all = std::move(parts[v.node]);
        } else {
          all.insert(all.end(), parts[v.node].begin(), parts[v.node].end());
        }
      }
      if (inside_[id]) {
        parts[id] = std::move(all);
        continue;
      }
      const ProvenanceScope scope(rebuild.to(), node.provenance ? *node.provenance : Provenance{});
      std::vector<Value> operands;
      for (const ValueId v : all) operands.push_back(rebuild.value(v));
      rebuild.map({id, 0}, rebuild.to().add_node(node.op, operands)[0]);
    }
    return finished(rebuild);
  }

 private:
  const Graph& graph_;
  std::vector<bool> inside_;  ///< a concat that one other along its axis reads, and nobody else
  bool any_ = false;
};

}  // namespace

Change flat_concats(const Graph& graph) { return Flattener(graph).run(); }

}  // namespace ricci::schedule
