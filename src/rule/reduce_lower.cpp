#include "op/kinds.h"
#include "rule/tables/lower_rules.h"

namespace ricci::rule {

// Mean and log-sum-exp are rewritten before lowering: see prepare_for_loops.
Lowering lower(const op::Reduce& op, const LowerContext& c) {
  if (is_by_others(op.op)) return {};
  Lowering l{.form = Lowering::Form::Reduction};
  l.reduce = op.op;
  l.reduced.assign(c.operands[0].size(), false);
  for (const Axis& a : op.axes) l.reduced[static_cast<std::size_t>(a.value)] = true;
  return l;
}

// A running total is a loop whose steps depend on each other.
Lowering lower(const op::Cumulative& op, const LowerContext& c) {
  return as_call(
      loop::Cumulative{op.kind, loop::split_at(c.result, op.axis.index()), op.exclusive});
}
Lowering lower(const op::CumsumBackward& op, const LowerContext& c) {
  return as_call(loop::Cumulative{CumulativeKind::Cumsum, loop::split_at(c.result, op.axis.index()),
                                  op.exclusive, true});
}

}  // namespace ricci::rule
