// Batching of the element-wise ops that do not broadcast.
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"

namespace ricci::rule {

BatchedValues batch(const op::ReluBackward& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c.lifted(0), c.lifted(1)});
}

BatchedValues batch(const op::ActivationBackward& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c.lifted(0), c.lifted(1)});
}

}  // namespace ricci::rule
