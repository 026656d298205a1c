#include "op/kinds.h"
#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

ReduceKind reduce_kind(CumulativeKind kind) {
  switch (kind) {
    case CumulativeKind::Cumsum: return ReduceKind::Sum;
    case CumulativeKind::Cumprod: return ReduceKind::Prod;
    case CumulativeKind::Cummax: return ReduceKind::Max;
    case CumulativeKind::Cummin: break;
  }
  return ReduceKind::Min;
}

// By loops where they say it, and a call elsewhere. Totals walk down an axis for many columns at a
// time; one column is a chain of its own, which no loop over elements says.
Lowering running(const loop::Cumulative& total, const Axis& axis, const LowerContext& c) {
  Lowering l = as_call(total);
  if (is_complex(c.dtypes[0]) || c.dtypes[0] == DType::Bool) return l;
  if (total.x.size <= 1 || total.x.inner <= 1 || total.x.outer == 0) return l;
  l.form = Lowering::Form::Running;
  l.reduce = reduce_kind(total.kind);
  l.axis = axis.index();
  l.exclusive = total.exclusive;
  l.from_end = total.from_end;
  return l;
}

}  // namespace

// Mean and log-sum-exp are rewritten before lowering: see prepare_for_loops.
Lowering lower(const op::Reduce& op, const LowerContext& c) {
  if (is_by_others(op.op)) return {};
  Lowering l{.form = Lowering::Form::Reduction};
  l.reduce = op.op;
  l.reduced.assign(c.operands[0].size(), false);
  for (const Axis& a : op.axes) l.reduced[static_cast<std::size_t>(a.value)] = true;
  return l;
}

Lowering lower(const op::Cumulative& op, const LowerContext& c) {
  return running({op.kind, loop::split_at(c.result, op.axis.index()), op.exclusive}, op.axis, c);
}

Lowering lower(const op::CumsumBackward& op, const LowerContext& c) {
  return running(
      {CumulativeKind::Cumsum, loop::split_at(c.result, op.axis.index()), op.exclusive, true},
      op.axis, c);
}

}  // namespace ricci::rule
