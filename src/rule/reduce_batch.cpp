// Batching of reductions: axes move one further.
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"

namespace ricci::rule {

BatchedValues batch(const op::Reduce& op, const VmapContext& c) {
  return {reduce(c[0], {.op = op.op, .axes = shifted(op.axes), .keep_dim = op.keep_dim})};
}

BatchedValues batch(const op::Softmax& op, const VmapContext& c) {
  return {softmax(c[0], {.axis = shifted(op.axis)})};
}

}  // namespace ricci::rule
