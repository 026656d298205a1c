// Derivatives and batching of linear systems. With x = A⁻¹ b,
//   db = A⁻ᴴ g, dA = -db·xᴴ  and  t_x = A⁻¹ (t_b - t_A·x).
#include "rule/axis_moves.h"
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

// A right-hand side as a matrix of columns: one that has a vector per system has one column.
Value as_columns(Value v, std::size_t matrix_rank) {
  if (v.rank() == matrix_rank) return v;
  Dims dims = v.dims();
  dims.emplace_back(1);
  return reshape_to(v, std::move(dims));
}

// Its transpose.
Value as_rows(Value v, std::size_t matrix_rank) {
  if (v.rank() == matrix_rank) return transpose_last(v);
  Dims dims = v.dims();
  dims.insert(dims.end() - 1, Dim(1));
  return reshape_to(v, std::move(dims));
}

// a·v, where v may be a vector per system.
Value times(Value a, Value v) { return reshape_to(matmul(a, as_columns(v, a.rank())), v.dims()); }

// -u·vᴴ
Value minus_outer(Value u, Value v, std::size_t matrix_rank) {
  return -matmul(as_columns(u, matrix_rank), as_rows(conj(v), matrix_rank));
}

template <class Solve>
Cotangents dense_vjp(const VjpContext& c, Solve&& solve) {
  Cotangents out = c.none();
  const Value db = solve(transpose_last(conj(c[0])), c.cotangent());
  if (c.needs(0)) out[0] = minus_outer(db, c.result(), c[0].rank());
  if (c.needs(1)) out[1] = db;
  return out;
}

// t_b - (t_A·x), either of which may be absent.
Value moved_right_side(Value t_b, Value t_a_times_x) {
  if (!t_a_times_x.valid()) return t_b;
  return t_b.valid() ? t_b - t_a_times_x : -t_a_times_x;
}

template <class Solve>
Tangents dense_jvp(JvpContext& c, Solve&& solve) {
  const Value moved = c.live(0) ? times(c.tangent(0), c.result()) : Value();
  return {solve(c[0], moved_right_side(c.tangent(1), moved))};
}

// Only the right-hand sides are batched: the examples are further columns of the same systems,
// [B, .., N] → [.., N, B] and [B, .., N, K] → [.., N, B·K], so that nothing is factorised twice.
template <class Solve>
BatchedValues over_columns(const VmapContext& c, Solve&& solve) {
  const Type& example = c.type(1);
  const bool vectors = example.rank() < c.type(0).rank();
  const std::size_t at = example.rank() - (vectors ? 0 : 1);
  const Value apart = with_axis_moved(c[1], 0, at);
  Dims columns = apart.dims();
  if (!vectors) {
    columns.pop_back();
    columns.back() = c.batch() * example.dims.back();
  }
  const Value x = reshape_to(solve(c[0], reshape_to(apart, std::move(columns))), apart.dims());
  return {with_axis_moved(x, at, 0)};
}

}  // namespace

Cotangents vjp(const op::DenseSolve&, const VjpContext& c) {
  return dense_vjp(c, [](Value a, Value b) { return dense_solve(a, b); });
}
Cotangents vjp(const op::BatchedDenseSolve&, const VjpContext& c) {
  return dense_vjp(c, [](Value a, Value b) { return batched_dense_solve(a, b); });
}

Tangents jvp(const op::DenseSolve&, JvpContext& c) {
  return dense_jvp(c, [](Value a, Value b) { return dense_solve(a, b); });
}
Tangents jvp(const op::BatchedDenseSolve&, JvpContext& c) {  // [LA-06]
  return dense_jvp(c, [](Value a, Value b) { return batched_dense_solve(a, b); });
}

BatchedValues batch(const op::DenseSolve&, const VmapContext& c) {
  if (c.batched(0)) return {batched_dense_solve(c[0], c.lifted(1))};
  return over_columns(c, [](Value a, Value b) { return dense_solve(a, b); });
}
BatchedValues batch(const op::BatchedDenseSolve&, const VmapContext& c) {  // [LA-06]
  if (c.batched(0)) return {c.unfolded(batched_dense_solve(c.folded(0), c.folded(1)))};
  return over_columns(c, [](Value a, Value b) { return batched_dense_solve(a, b); });
}

namespace {

// The part of a square matrix that triangular_solve reads, zero elsewhere. Selected, not
// multiplied: what is not read may hold anything.
Value read_part(const op::TriangularSolve& op, Value a) {
  const Dim& n = a.dims().back();
  const auto index = [&](Axis axis) {
    return iota(a.graph(), {.shape = {n, n}, .axis = axis, .dtype = DType::I64});
  };
  const Value row = index(0);
  const Value column = index(1);
  const Value below = op.lower ? row : column;
  const Value above = op.lower ? column : row;
  return where(op.unit ? gt(below, above) : ge(below, above), a, zero_like(a));
}

}  // namespace

// op(T)ᴴ is solved with by conjugating T and transposing the other way round; -db·xᴴ is the
// cotangent of op(T), so that of T is its transpose when op transposes.
Cotangents vjp(const op::TriangularSolve& op, const VjpContext& c) {
  Cotangents out = c.none();
  const op::TriangularSolve adjoint{.lower = op.lower, .transpose = !op.transpose, .unit = op.unit};
  const Value db = triangular_solve(conj(c[0]), c.cotangent(), adjoint);
  if (c.needs(0)) {
    const Value whole = minus_outer(db, c.result(), c[0].rank());
    out[0] = read_part(op, op.transpose ? transpose_last(whole) : whole);
  }
  if (c.needs(1)) out[1] = db;
  return out;
}

Tangents jvp(const op::TriangularSolve& op, JvpContext& c) {
  Value moved;
  if (c.live(0)) {
    const Value t = read_part(op, c.tangent(0));
    moved = matmul(op.transpose ? transpose_last(t) : t, c.result());
  }
  return {triangular_solve(c[0], moved_right_side(c.tangent(1), moved), op)};
}

BatchedValues batch(const op::TriangularSolve& op, const VmapContext& c) {
  if (c.batched(0)) return {triangular_solve(c[0], c.lifted(1), op)};
  return over_columns(c, [&](Value a, Value b) { return triangular_solve(a, b, op); });
}

}  // namespace ricci::rule
