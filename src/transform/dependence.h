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
  [[nodiscard]] std::vector<bool> operands(const Graph& graph, NodeId node) const;

 private:
  std::vector<std::vector<bool>> marks_;
};

}  // namespace ricci
