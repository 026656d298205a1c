// The graph that forward rules are read in when series are computed: the functions of the curve
// parameter s that the series of a result is made of. Equal functions are one node, so that
// formulas which lead back to where they began, as sin to cos to sin, end there.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

class RuleGraph {
 public:
  explicit RuleGraph(const Graph& like);

  RuleGraph(const RuleGraph&) = delete;  // values point into it
  RuleGraph& operator=(const RuleGraph&) = delete;

  [[nodiscard]] Graph& graph() noexcept { return graph_; }
  [[nodiscard]] const Node& node(NodeId id) const { return graph_.nodes()[id]; }
  /// Copies a node of the graph under transformation.
  NodeId mirror(const Node& node, std::vector<ValueId> operands);
  /// Merges the nodes that were added since the last call with their equals.
  void merge_new();
  /// Where a value is after merging.
  [[nodiscard]] ValueId resolved(ValueId v) const { return {same_as_[v.node], v.result}; }
  /// Operands of a node, where they are after merging.
  [[nodiscard]] std::vector<Value> operands(const Node& node);

  /// Does a value change along the curve? To be marked for leaves; others follow from their
  /// operands.
  [[nodiscard]] bool moves(ValueId v) const { return moves_[v.node][v.result]; }
  void mark_moving(ValueId v) { moves_[v.node][v.result] = true; }
  /// Which operands of a node carry a derivative and move.
  [[nodiscard]] std::vector<bool> moving_operands(const Node& node) const;

  /// An input that stands for dv/ds.
  [[nodiscard]] Value rate(ValueId v);
  /// What an input of `rate` is the rate of; nothing for other nodes.
  [[nodiscard]] const ValueId* rated_by(NodeId id) const;

  /// Whether `values`, built since node `first`, depend on nothing that moves but on `rates`.
  [[nodiscard]] bool depend_on_rates_only(const std::vector<Value>& values, NodeId first,
                                          const std::vector<Value>& rates) const;

 private:
  [[nodiscard]] bool same(const Node& a, const Node& b) const;
  [[nodiscard]] std::uint64_t key_of(const Node& node) const;

  Graph graph_;
  std::vector<NodeId> same_as_;
  std::vector<std::vector<bool>> moves_;
  std::unordered_map<std::uint64_t, std::vector<NodeId>> seen_;
  std::map<ValueId, ValueId> rates_;
  std::map<NodeId, ValueId> rated_by_;
};

}  // namespace ricci
