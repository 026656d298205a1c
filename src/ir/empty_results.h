// Nodes that have nothing to compute because all they give is empty. A size beside the zero may be
// as large as it likes: nobody may loop over it, so nobody is asked to.
#pragma once

#include <algorithm>

#include "ricci/ir/graph.h"
#include "ricci/op/table.h"

namespace ricci {

[[nodiscard]] inline bool is_empty(const Type& type) {
  return std::ranges::any_of(type.dims, [](const Dim& d) { return d.is(0); });
}

/// Can an op whose wanted results are all empty do nothing but give them? One that looks for faults
/// in operands still does, unless these are empty too. `operand(k)` is a type.
template <class OperandType>
[[nodiscard]] bool does_nothing_else(const Op& op, std::size_t operands, OperandType&& operand) {
  if (!op.has(Trait::Faults)) return true;
  // Indices, which are what has no derivative; else everything.
  const OpDescriptor& d = descriptor(op.kind());
  for (std::size_t k = 0; k < operands; ++k) {
    const bool looked_at = d.info->no_gradient.empty() ||
                           parameter_name(d.operands, k, operands) == d.info->no_gradient;
    if (looked_at && !is_empty(operand(k))) return false;
  }
  return op.op_class() != OpClass::Custom;
}

/// Are all results that are wanted empty, and can the node do nothing but give them?
template <class OperandType>
[[nodiscard]] bool gives_nothing(const Node& node, std::size_t operands, OperandType&& operand) {
  if (node.op.op_class() == OpClass::Leaf || !node.bodies.empty()) return false;
  for (std::size_t r = 0; r < node.types.size(); ++r) {
    if (node.wanted[r] && !is_empty(node.types[r])) return false;
  }
  return does_nothing_else(node.op, operands, operand);
}

}  // namespace ricci
