// Orders, extremes and draws as calls.
#include "rule/tables/lower_rules.h"

namespace ricci::rule {

Lowering lower(const op::Sort& op, const LowerContext& c) {
  const loop::AxisSplit x = loop::split_at(c.operands[0], op.axis.index());
  return as_call(loop::Sort{x, x.size, op.descending});
}

// The largest few of each row, in order.
Lowering lower(const op::TopK&, const LowerContext& c) {
  const loop::AxisSplit x = loop::split_at(c.operands[0], c.operands[0].size() - 1);
  return as_call(loop::Sort{x, c.result.back(), true});
}

Lowering lower(const op::ArgReduce& op, const LowerContext& c) {
  return as_call(
      loop::ArgReduce{loop::split_at(c.operands[0], op.axis.index()), op.kind == ArgKind::ArgMax});
}

Lowering lower(const op::Sample& op, const LowerContext& c) {
  const StaticDims& logits = c.operands[0];
  loop::Sample sample{.rows = loop::split_at(logits, logits.size() - 1).outer,
                      .width = logits.back(),
                      .top_k = op.top_k,
                      .top_p = op.top_p,
                      .temperature = op.temperature};
  sample.key = static_cast<std::uint64_t>(op.seed != 0 ? op.seed : op.key.value_or(0));
  if (c.operands.size() > 1) sample.key_operand = 1;
  return as_call(sample);
}

}  // namespace ricci::rule
