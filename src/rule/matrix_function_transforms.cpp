// Derivatives, batching and expansions of exponentials, cofactors, determinants and
// pseudo-inverses.
#include "ricci/build/linalg.h"

#include "build/matrix_parts.h"
#include "rule/derivative_parts.h"
#include "rule/factor_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/expand_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"
#include "type/epsilon.h"

namespace ricci::rule {
namespace {

using namespace ricci::matrix;

// The derivative of e^a in the direction e is a block of an exponential:
//   exp [a e; 0 a] = [e^a  L(a, e); 0  e^a]
Value exponential_slope(Value a, Value e) {
  const Dim n = rows_of(a);
  const Axis row = row_axis(a);
  const Axis column = column_axis(a);
  const Value top = concat(std::array{a, e}, {.axis = column});
  const Value bottom = concat(std::array{zeros_like(a), a}, {.axis = column});
  const Value whole = matrix_exp(concat(std::array{top, bottom}, {.axis = row}));
  return narrow(first_rows(whole, n), {.axis = column, .start = n, .len = n});
}

// Σ over both axes of a matrix, which stay as sizes of 1.
Value matrix_total(Value a) { return sum(a, {row_axis(a), column_axis(a)}, true); }
// One number a matrix as a matrix [1, 1], and back.
Value as_one_by_one(Value d) { return as_column(as_column(d)); }
Value as_number(Value a) {
  Dims dims = a.dims();
  dims.resize(dims.size() - 2);
  return reshape_to(a, std::move(dims));
}

}  // namespace

Tangents jvp(const op::MatrixExp&, JvpContext& c) {
  return {exponential_slope(c[0], c.tangent(0))};
}
Cotangents vjp(const op::MatrixExp&, const VjpContext& c) {
  return {exponential_slope(adjoint(c[0]), c.cotangent())};
}
BatchedValues batch(const op::MatrixExp& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

namespace {

// The derivative of adj at a, where it is b, in the direction t. It is a polynomial of a: up to a
// size of 3 it is written as one, and holds for singular matrices too; beyond, with d = det(a),
//   (tr(b t) b - b t b) / d
Value adjugate_slope(Value a, Value b, Value t) {
  const Dim n = rows_of(a);
  if (n.is(1)) return zeros_like(a);
  if (n.is(2)) return adjugate(t);
  if (n.is(3)) {
    const Value one = identity(a.graph(), n, a.dtype());
    const Value tr_a = as_one_by_one(trace(a));
    const Value tr_t = as_one_by_one(trace(t));
    const Value at = matmul(a, t);
    return at + matmul(t, a) - tr_t * a - tr_a * t + (tr_a * tr_t - as_one_by_one(trace(at))) * one;
  }
  const Value along = matrix_total(transpose_last(b) * t);
  return (along * b - matmul(matmul(b, t), b)) / as_one_by_one(det(a));
}

}  // namespace

Tangents jvp(const op::Adjugate&, JvpContext& c) {
  return {adjugate_slope(c[0], c.result(), c.tangent(0))};
}
// The transpose is the same at aᴴ.
Cotangents vjp(const op::Adjugate&, const VjpContext& c) {
  return {adjugate_slope(adjoint(c[0]), adjoint(c.result()), c.cotangent())};
}
BatchedValues batch(const op::Adjugate& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

// The product of the diagonal, and a sign for every exchange of rows.
std::vector<Value> expand(const op::Det&, const ExpandContext& c) {
  return {determinant_from(lu(c[0]))};
}
// t_out = tr(adj(a) t)
Tangents jvp(const op::Det&, JvpContext& c) {
  return {as_number(matrix_total(transpose_last(adjugate(c[0])) * c.tangent(0)))};
}
Cotangents vjp(const op::Det&, const VjpContext& c) {
  return {as_one_by_one(c.cotangent()) * adjoint(adjugate(c[0]))};
}
BatchedValues batch(const op::Det& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

std::vector<Value> expand(const op::Pinv& op, const ExpandContext& c) {
  const Value a = c[0];
  const auto [u, s, vh] = svd(a);
  const Value v = adjoint(vh);
  if (s.dims().back().is(0)) return {matmul(v, adjoint(u))};
  const Dim longer = s.dims().back() == columns_of(a) ? rows_of(a) : columns_of(a);
  const Value largest = reduce(
      s,
      {.op = ReduceKind::Max, .axes = {static_cast<std::int64_t>(s.rank()) - 1}, .keep_dim = true});
  const Value share = op.rcond ? scalar_like(s, op.rcond->value)
                               : size_as_number(longer, s) * (10 * epsilon_of(s.dtype()));
  const Value counts = gt(s, largest * share);
  const Value inverse =
      where(counts, reciprocal(where(counts, s, scalar_like(s, 1))), scalar_like(s, 0));
  return {matmul(v * as_row(cast_to(inverse, a.dtype())), adjoint(u))};
}

// With P = pinv(a), among matrices of the same rank:
//   t_P = -P t P + P Pᴴ tᴴ (1 - a P) + (1 - P a) tᴴ Pᴴ P
Tangents jvp(const op::Pinv&, JvpContext& c) {
  const Value a = c[0];
  const Value p = c.result();
  const Value t = c.tangent(0);
  const Value th = adjoint(t);
  const Value ph = adjoint(p);
  const Value x = matmul(matmul(p, ph), th);
  const Value y = matmul(matmul(th, ph), p);
  return {(x - matmul(matmul(x, a), p)) + (y - matmul(p, matmul(a, y))) - matmul(matmul(p, t), p)};
}
// da = -Pᴴ g Pᴴ + (1 - a P) gᴴ P Pᴴ + Pᴴ P gᴴ (1 - P a)
Cotangents vjp(const op::Pinv&, const VjpContext& c) {
  const Value a = c[0];
  const Value p = c.result();
  const Value g = c.cotangent();
  const Value gh = adjoint(g);
  const Value ph = adjoint(p);
  const Value x = matmul(matmul(gh, p), ph);
  const Value y = matmul(ph, matmul(p, gh));
  return {(x - matmul(a, matmul(p, x))) + (y - matmul(matmul(y, p), a)) -
          matmul(matmul(ph, g), ph)};
}
BatchedValues batch(const op::Pinv& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

}  // namespace ricci::rule
