#include <algorithm>
#include <unordered_map>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/op/elementwise.h"
#include "ricci/op/leaf.h"
#include "ricci/support/hash.h"

#include "ir/draws_numbers.h"
#include "rewrite/changes.h"
#include "support/phases.h"

namespace ricci {
namespace {

// May the two operands change places without changing a bit?
bool commutes(const Op& op, DType dtype) {
  if (const auto* compare = op.as<op::Compare>()) return row(compare->kind).commutes.has(dtype);
  if (const auto* binary = op.as<op::Binary>()) return row(binary->kind).commutes.has(dtype);
  return op.has(Trait::Commutative);
}

class Merger {
 public:
  explicit Merger(const Graph& graph) : graph_(graph), rebuild_(graph) {}

  Change run() {
    for (NodeId id = 0; id < graph_.size(); ++id) visit(id);
    if (!changed_) return std::nullopt;
    return finished(rebuild_);
  }

 private:
  void visit(NodeId id) {
    const Node& node = graph_.nodes()[id];
    if (node.op.is<op::Input>() || node.op.is<op::Param>()) {
      rebuild_.copy(id);
      return;
    }
    std::vector<Body> bodies = map_bodies(node, common_subexpression_elimination, changed_);
    if (draws_numbers(node)) {
      rebuild_.copy(id, std::move(bodies));
      return;
    }
    std::vector<ValueId> operands = key_operands(node);
    std::vector<NodeId>& bucket = seen_[key_of(node, operands, bodies)];
    for (const NodeId earlier : bucket) {
      if (!same(earlier, node, operands, bodies)) continue;
      merge(id, earlier);
      return;
    }
    const NodeId now = rebuild_.copy(id, std::move(bodies));
    bucket.push_back(now);
    operands_.emplace(now, std::move(operands));
  }

  // The operands in the new graph; those that may change places in order.
  std::vector<ValueId> key_operands(const Node& node) {
    std::vector<ValueId> operands;
    for (const ValueId v : node.operands) operands.push_back(rebuild_(v));
    if (operands.size() == 2 && commutes(node.op, graph_.type(node.operands[0]).dtype)) {
      std::ranges::sort(operands);
    }
    return operands;
  }

  static std::uint64_t key_of(const Node& node, std::span<const ValueId> operands,
                              std::span<const Body> bodies) {
    Hasher h;
    h.add(node.op.hash());
    for (const ValueId v : operands) h.add((std::uint64_t{v.node} << 32) | v.result);
    for (const Body& b : bodies) h.add(b.role).add(b.graph->hash());
    return h.value();
  }

  bool same(NodeId earlier, const Node& node, std::span<const ValueId> operands,
            std::span<const Body> bodies) {
    const Node& first = rebuild_.to().node(earlier);
    return first.types == node.types && first.op == node.op &&
           std::ranges::equal(operands_.at(earlier), operands) &&
           std::ranges::equal(first.bodies, bodies, [](const Body& a, const Body& b) {
             return a.role == b.role && (a.graph == b.graph || *a.graph == *b.graph);
           });
  }

  void merge(NodeId id, NodeId earlier) {
    changed_ = true;
    const Node& node = graph_.nodes()[id];
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      const ValueId kept{earlier, r};
      rebuild_.map({id, r}, kept);
      if (node.wanted[r]) rebuild_.to().set_wanted(kept, true);
      if (rebuild_.to().node(earlier).names[r].empty()) {
        rebuild_.to().set_value_name(kept, node.names[r]);
      }
    }
  }

  const Graph& graph_;
  Rebuilder rebuild_;
  std::unordered_map<std::uint64_t, std::vector<NodeId>> seen_;
  std::unordered_map<NodeId, std::vector<ValueId>> operands_;  // as keys have them
  bool changed_ = false;
};

}  // namespace

Change merge_common(const Graph& graph) {
  const Phase phase("common subexpressions");
  return Merger(graph).run();
}

PassResult common_subexpression_elimination(const Graph& graph) {
  return or_unchanged(graph, merge_common(graph));
}

}  // namespace ricci
