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
bool walks_in_columns(std::int64_t above, std::int64_t columns) {
  constexpr std::int64_t ManyRows = 8;
  constexpr std::int64_t LongPart = 512;
  constexpr std::int64_t ShortPart = 64;
  if (columns <= 1) return false;
  if (above >= ManyRows || columns <= LongPart) return true;
  for (std::int64_t part = LongPart; part >= ShortPart; --part) {
    if (columns % part == 0) return true;
  }
  return false;
}

Lowering running(ReduceKind kind, const Axis& axis, bool exclusive, bool from_end,
                 const LowerContext& c) {
  const auto at = static_cast<std::size_t>(axis.value);
  const StaticDims& dims = c.operands[0];
  if (is_complex(c.dtypes[0]) || c.dtypes[0] == DType::Bool) return {};
  if (dims.empty() || dims[at] <= 1 || loop::element_count(dims) == 0) return {};
  const std::int64_t columns = loop::element_count(std::span(dims).subspan(at + 1));
  if (!walks_in_columns(loop::element_count(std::span(dims).first(at)), columns)) return {};
  Lowering l{.form = Lowering::Form::Running};
  l.reduce = kind;
  l.axis = at;
  l.exclusive = exclusive;
  l.from_end = from_end;
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
  return running(reduce_kind(op.kind), op.axis, op.exclusive, false, c);
}

Lowering lower(const op::CumsumBackward& op, const LowerContext& c) {
  return running(ReduceKind::Sum, op.axis, op.exclusive, true, c);
}

}  // namespace ricci::rule
