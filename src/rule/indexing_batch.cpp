// Batching of the ops that read and write by index. Where tables and indices are both batched, the
// rows of all examples become rows of one table. An index is checked against its own example's rows
// before that, so one outside of them is reported and never reaches another example's.
#include "rule/derivative_parts.h"
#include "rule/merged_rows.h"
#include "rule/tables/batch_rules.h"

namespace ricci::rule {
namespace {

// `count` axes from `from` on moved to `to`, counted in the result.
Value move_axes(Value v, std::size_t from, std::size_t count, std::size_t to) {
  if (from == to || count == 0) return v;
  Axes perm;
  Axes block;
  for (std::size_t i = 0; i < v.rank(); ++i) {
    const bool moves = i >= from && i < from + count;
    (moves ? block : perm).emplace_back(static_cast<std::int64_t>(i));
  }
  perm.insert(perm.begin() + static_cast<std::ptrdiff_t>(to), block.begin(), block.end());
  return transpose(v, {.perm = perm});
}

// [B·N, …] → [B, N, …]
Value split_front(Value v, const Dim& batch, const Dim& size) {
  Dims dims{batch, size};
  dims.insert(dims.end(), v.dims().begin() + 1, v.dims().end());
  return reshape_to(v, std::move(dims));
}

// gather of a table that has a batch or not by indices [B, k…]; `axis` is the example's.
Value gather_each(Value table, bool table_batched, Value indices, std::size_t axis) {
  if (!table_batched) {
    return move_axes(gather(table, indices, {.axis = static_cast<std::int64_t>(axis)}), axis, 1, 0);
  }
  const Value rows = merged_rows(indices, table.dims()[axis + 1]);
  const Value merged = merge_front(move_axes(table, axis + 1, 1, 1));
  return move_axes(gather(merged, rows, {.axis = 0}), indices.rank(), axis, 1);
}

// gather_backward of dy [B, o…, k…, t…] by indices [B, k…]; `axis` is the example's.
Value scatter_each(Value dy, Value indices, std::size_t axis, const Dim& size) {
  const Dim batch = indices.dims()[0];
  const Value updates = move_axes(dy, axis + 1, indices.rank() - 1, 1);
  const Value sums = scatter_add(updates, merged_rows(indices, size), {.out_dim = batch * size});
  return move_axes(split_front(sums, batch, size), 1, 1, axis + 1);
}

// A start per example, moved inside its axis.
class Starts {
 public:
  Starts(Value given, const Dim& last) {
    const Value column = reshape_to(given, {given.dims()[0], 1});
    Value number = column;
    if (is_float(given.dtype())) {
      // What the op alone takes for an index: an integer the dtype holds exactly.
      const double beyond = given.dtype() == DType::F64 ? 0x1p53 : 0x1p24;
      exact_ = logical_and(eq(column, trunc(column)), lt(abs(column), scalar_like(column, beyond)));
      number = where(exact_, column, zero_like(column));
    }
    number = cast_to(number, DType::I64);
    column_ = min(max(number, zero_like(number)), size_as_number(last, number));
  }

  /// [B, 1]
  [[nodiscard]] Value column() const { return column_; }
  /// Indices [B, n] made from the starts; where a start is no index, neither are they.
  [[nodiscard]] Value checked(Value rows) const {
    return exact_.valid() ? where(exact_, rows, scalar_like(rows, -1)) : rows;
  }

 private:
  Value column_;
  Value exact_;
};

Value positions(Graph& graph, const Dim& count) {
  return iota(graph, {.shape = {count}, .dtype = DType::I64});
}

}  // namespace

// [SH-10] the batch is in the table, in the indices, or in both
BatchedValues batch(const op::Gather& op, const VmapContext& c) {
  if (!c.batched(1)) return {gather(c[0], c[1], {.axis = shifted(op.axis)})};
  return {gather_each(c[0], c.batched(0), c[1], op.axis.index())};
}

BatchedValues batch(const op::GatherBackward& op, const VmapContext& c) {
  if (!c.batched(1)) {
    return {gather_backward(c[0], c[1], {.axis = shifted(op.axis), .axis_size = op.axis_size})};
  }
  return {scatter_each(c.lifted(0), c[1], op.axis.index(), op.axis_size)};
}

// [SH-12] examples never add to each other's rows
BatchedValues batch(const op::ScatterAdd& op, const VmapContext& c) {
  if (!c.batched(1)) return {gather_backward(c[0], c[1], {.axis = 1, .axis_size = op.out_dim})};
  return {scatter_each(c.lifted(0), c[1], 0, op.out_dim)};
}

// Examples that share their indices lie side by side in the rows of one table.
BatchedValues batch(const op::Scatter& op, const VmapContext& c) {
  if (!c.batched(2)) {
    const Value rows = move_axes(c.lifted(0), 0, 1, 1);
    const Value updates = move_axes(c.lifted(1), 0, 1, c.type(2).rank());
    return {move_axes(scatter(rows, updates, c[2], op), 1, 1, 0)};
  }
  const Dim size = c.type(0).dims[0];
  const Value rows = merged_rows(c[2], size);
  const Value out = scatter(merge_front(c.lifted(0)), c.lifted(1), rows, op);
  return {split_front(out, c.batch(), size)};
}

BatchedValues batch(const op::TakeAlongAxis& op, const VmapContext& c) {
  return {take_along_axis(c.lifted(0), c.lifted(1), {.axis = shifted(op.axis)})};
}

BatchedValues batch(const op::ScatterAddAlongAxis& op, const VmapContext& c) {
  return {scatter_add_along_axis(c.lifted(0), c.lifted(1),
                                 {.axis = shifted(op.axis), .axis_size = op.axis_size})};
}

BatchedValues batch(const op::DynamicNarrow& op, const VmapContext& c) {
  if (!c.batched(1)) {
    return {dynamic_narrow(c[0], c[1], {.axis = shifted(op.axis), .len = op.len})};
  }
  const std::size_t axis = op.axis.index();
  const Starts starts(c[1], c.type(0).dims[axis] - op.len);
  const Value rows = starts.checked(starts.column() + positions(c.graph(), op.len));
  return {gather_each(c[0], c.batched(0), rows, axis)};
}

// With a start per example every row is picked from x followed by update.
BatchedValues batch(const op::DynamicUpdate& op, const VmapContext& c) {
  const bool batched = c.batched(0) || c.batched(1);
  const Value x = batched ? c.lifted(0) : c[0];
  const Value update = batched ? c.lifted(1) : c[1];
  if (!c.batched(2)) return {dynamic_update(x, update, c[2], {.axis = shifted(op.axis)})};
  const std::size_t axis = op.axis.index();
  const Dim size = c.type(0).dims[axis];
  const Dim len = c.type(1).dims[axis];
  const Starts starts(c[2], size - len);
  const Value place = positions(c.graph(), size);
  const Value within = place - starts.column();
  const Value replaced =
      logical_and(ge(within, zero_like(within)), lt(within, size_as_number(len, within)));
  const Value rows = where(replaced, within + size_as_number(size, within), place);
  const Value both = concat({x, update}, {.axis = batched ? shifted(op.axis) : op.axis});
  return {gather_each(both, batched, starts.checked(rows), axis)};
}

}  // namespace ricci::rule
