// Expansion: a composite op written out in other ops. Composites must have one, structured ops may;
// it agrees with the reference kernel within the dtype's tolerance.
#pragma once

#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

/// What an expansion is given. Operands of f16 and bf16 arrive as f32: an expansion computes in f32
/// and the driver rounds its results once. Those of a node with bodies keep their dtypes.
struct ExpandContext {
  Graph& graph;
  const Node& node;
  std::vector<Value> operands;

  [[nodiscard]] Value operator[](std::size_t k) const { return operands[k]; }
  [[nodiscard]] std::size_t size() const { return operands.size(); }
  [[nodiscard]] bool wanted(std::size_t r) const { return node.wanted[r]; }
};

/// Does this op have an expansion?
[[nodiscard]] bool has_expansion(OpKind kind) noexcept;

/// Builds a node's expansion into `graph`; one value per result, invalid for unwanted ones.
/// UserError(refused) for an op without one.
[[nodiscard]] std::vector<Value> expand_node(const Node& node, std::vector<Value> operands,
                                             Graph& graph);

}  // namespace ricci
