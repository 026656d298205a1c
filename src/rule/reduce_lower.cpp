#include <span>

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

// Totals walk down an axis for many columns at a time. One column is a chain of its own, which no
// loop over elements says; columns that cannot be shared out keep their kernel.
bool walks_in_columns(std::int64_t above, std::int64_t columns,
                      std::span<const std::int64_t> behind) {
  constexpr std::int64_t ManyRows = 8;
  constexpr std::int64_t LongPart = 512;
  constexpr std::int64_t ShortPart = 64;
  if (columns <= 1) return false;
  if (above >= ManyRows || columns <= LongPart) return true;
  // A part is some steps along one axis, and all of those behind it.
  for (std::int64_t part = LongPart; part >= ShortPart; --part) {
    std::int64_t unit = 1;
    for (std::size_t a = behind.size(); a-- > 0; unit *= behind[a]) {
      if (part % unit == 0 && unit * behind[a] % part == 0) return true;
    }
  }
  return false;
}

// By loops where they say it, and a call elsewhere.
Lowering running(const loop::Cumulative& total, const Axis& axis, const LowerContext& c) {
  Lowering l = as_call(total);
  if (is_complex(c.dtypes[0]) || c.dtypes[0] == DType::Bool) return l;
  if (total.x.size <= 1 || loop::element_count(c.operands[0]) == 0) return l;
  const auto behind = std::span<const std::int64_t>(c.operands[0]).subspan(axis.index() + 1);
  if (!walks_in_columns(total.x.outer, total.x.inner, behind)) return l;
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
