// Which values of a graph depend differentiably on others.
#pragma once

#include <span>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

class Dependence {
 public:
  Dependence() = default;
  /// Marks `from` and everything that depends on one of them through a derivative.
  Dependence(const Graph& graph, std::span<const ValueId> from);

  [[nodiscard]] bool operator()(ValueId v) const { return marks_[v.node][v.result]; }
  /// Does any result of the node depend?
  [[nodiscard]] bool any(NodeId node) const;
  /// The operands of a node through which a derivative passes.
  [[nodiscard]] const std::vector<bool>& operands(NodeId node) const { return operands_[node]; }
  /// Does a derivative pass through the node?
  [[nodiscard]] bool passes(NodeId node) const;

 private:
  std::vector<std::vector<bool>> marks_;     // per result
  std::vector<std::vector<bool>> operands_;  // per operand
};

/// Marks the nodes that some of the given values are computed from, theirs included.
[[nodiscard]] std::vector<bool> leading_to(const Graph& graph, std::span<const ValueId> values);

}  // namespace ricci
