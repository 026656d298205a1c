// Reverse rule and batching of the losses. Logits may have any number of axes before the classes,
// so a batch is one more.
#include "ricci/op/loss.h"

#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {

Cotangents vjp(const op::SoftmaxCrossEntropyWithLogits&, const VjpContext& c) {
  Cotangents out = c.none();
  out[0] = softmax_cross_entropy_backward(c[0], c[1], c.cotangent());
  return out;
}

BatchedValues batch(const op::SoftmaxCrossEntropyWithLogits& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c.lifted(0), c.lifted(1)});
}

BatchedValues batch(const op::SoftmaxCrossEntropyBackward& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c.lifted(0), c.lifted(1), c.lifted(2)});
}

}  // namespace ricci::rule
