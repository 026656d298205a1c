#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/op/leaf.h"

#include "rewrite/changes.h"
#include "support/phases.h"

namespace ricci {
namespace {

// Which results an output depends on. One walk backwards: operands come before their readers.
class Reads {
 public:
  explicit Reads(const Graph& graph) {
    first_.reserve(graph.size() + 1);
    first_.push_back(0);
    for (const Node& node : graph.nodes()) first_.push_back(first_.back() + node.types.size());
    read_.resize(first_.back());
    for (const ValueId v : graph.outputs()) mark(v);
    for (std::size_t id = graph.size(); id-- > 0;) {
      if (!any(id)) continue;
      for (const ValueId v : graph.nodes()[id].operands) mark(v);
    }
  }

  [[nodiscard]] bool of(std::size_t node, std::size_t result) const {
    return read_[first_[node] + result];
  }
  [[nodiscard]] bool any(std::size_t node) const {
    for (std::size_t at = first_[node]; at < first_[node + 1]; ++at) {
      if (read_[at]) return true;
    }
    return false;
  }

 private:
  void mark(ValueId v) { read_[first_[v.node] + v.result] = true; }

  std::vector<std::size_t> first_;
  std::vector<bool> read_;
};

bool has_dead(const Graph& graph, const Reads& reads) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (node.is_leaf()) continue;
    if (!reads.any(id)) return true;
    for (std::size_t r = 0; r < node.types.size(); ++r) {
      if (node.wanted[r] && !reads.of(id, r)) return true;
    }
  }
  return false;
}

}  // namespace

Change drop_dead_code(const Graph& graph) {
  const Phase phase("dead code");
  const Reads reads(graph);
  const ChangedBodies bodies(graph, drop_dead_code);
  if (!bodies.any() && !has_dead(graph, reads)) return std::nullopt;
  Rebuilder rebuild(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (!node.is_leaf() && !reads.any(id)) continue;
    const NodeId now = rebuild.copy(id, bodies.of(id, node));
    if (node.is_leaf()) continue;
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (!node.wanted[r] || reads.of(id, r)) continue;
      rebuild.to().set_wanted({now, r}, false);
      rebuild.drop({id, r});
    }
  }
  return finished(rebuild);
}

PassResult dead_code_elimination(const Graph& graph) {
  return or_unchanged(graph, drop_dead_code(graph));
}

}  // namespace ricci
