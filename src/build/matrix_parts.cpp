#include "build/matrix_parts.h"

namespace ricci::matrix {
namespace {

Value index_along(Graph& graph, Dims shape, Axis axis) {
  return iota(graph, {.shape = std::move(shape), .axis = axis, .dtype = DType::I64});
}

Value with_axis(Value d, std::size_t at) {
  Dims dims = d.dims();
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), Dim(1));
  return reshape_to(d, std::move(dims));
}

Value is_in(Part part, Graph& graph, const Dims& shape) {
  const Value row = index_along(graph, shape, 0);
  const Value column = index_along(graph, shape, 1);
  switch (part) {
    case Part::Lower: return ge(row, column);
    case Part::StrictlyLower: return gt(row, column);
    case Part::Upper: return le(row, column);
    case Part::Diagonal: break;
  }
  return eq(row, column);
}

}  // namespace

Value part_of(Value a, Part part) {
  return where(is_in(part, a.graph(), {rows_of(a), columns_of(a)}), a, scalar_like(a, 0));
}

Value identity(Graph& graph, const Dim& n, DType dtype) {
  return cast_to(is_in(Part::Diagonal, graph, {n, n}), dtype);
}

Value diagonal_of(Value a) { return sum(part_of(a, Part::Diagonal), {column_axis(a)}); }

Value on_diagonal(Value d) {
  const Dim n = d.dims().back();
  const Value spread = with_axis(d, d.rank());
  return where(is_in(Part::Diagonal, d.graph(), {n, n}), spread, scalar_like(d, 0));
}

Value as_column(Value d) { return with_axis(d, d.rank()); }
Value as_row(Value d) { return with_axis(d, d.rank() - 1); }

Value adjoint(Value a) {
  const Value t = transpose_last(a);
  return is_complex(a.dtype()) ? conjugate(t) : t;
}

Value hermitian_part(Value a) { return (a + adjoint(a)) * 0.5; }

Value first_rows(Value a, const Dim& count) {
  if (rows_of(a) == count) return a;
  return narrow(a, {.axis = row_axis(a), .start = 0, .len = count});
}
Value first_columns(Value a, const Dim& count) {
  if (columns_of(a) == count) return a;
  return narrow(a, {.axis = column_axis(a), .start = 0, .len = count});
}

Value sign_of_exchanges(Value pivots, DType dtype) {
  const Axis last = static_cast<std::int64_t>(pivots.rank()) - 1;
  const Value place = index_along(pivots.graph(), {pivots.dims().back()}, 0);
  const Value exchanged = ne(pivots, cast_to(place, pivots.dtype()));
  Graph& graph = pivots.graph();
  const Value one = graph.constant(Tensor::splat({dtype, {}}, 1));
  const Value minus = graph.constant(Tensor::splat({dtype, {}}, -1));
  return reduce(where(exchanged, minus, one), {.op = ReduceKind::Prod, .axes = {last}});
}

Value determinant_from(const std::array<Value, 3>& factors) {
  const Value diagonal = diagonal_of(factors[0]);
  const Axis last = static_cast<std::int64_t>(diagonal.rank()) - 1;
  return reduce(diagonal, {.op = ReduceKind::Prod, .axes = {last}}) *
         sign_of_exchanges(factors[1], diagonal.dtype());
}

Axis row_axis(Value a) { return static_cast<std::int64_t>(a.rank()) - 2; }
Axis column_axis(Value a) { return static_cast<std::int64_t>(a.rank()) - 1; }
Dim rows_of(Value a) { return a.dims()[a.rank() - 2]; }
Dim columns_of(Value a) { return a.dims().back(); }

}  // namespace ricci::matrix
