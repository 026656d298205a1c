// Derivatives and batching of triangular and orthonormal factors.
#include "build/matrix_parts.h"
#include "rule/derivative_parts.h"
#include "rule/factor_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

using namespace ricci::matrix;

constexpr op::TriangularSolve LowerTriangle{.lower = true};
constexpr op::TriangularSolve UnitLowerTriangle{.lower = true, .unit = true};
constexpr op::TriangularSolve UpperTriangle{.lower = false};

// t⁻¹ x and t⁻ᴴ x of a triangle.
Value solved(Value t, Value x, op::TriangularSolve which) { return triangular_solve(t, x, which); }
Value solved_adjoint(Value t, Value x, op::TriangularSolve which) {
  which.transpose = !which.transpose;
  return triangular_solve(conj(t), x, which);
}
// x t⁻¹ and x t⁻ᴴ
Value solved_from_right(Value x, Value t, op::TriangularSolve which) {
  return adjoint(solved_adjoint(t, adjoint(x), which));
}
Value solved_adjoint_from_right(Value x, Value t, op::TriangularSolve which) {
  return adjoint(solved(t, adjoint(x), which));
}

// The lower triangle with half of the diagonal.
Value half_lower(Value a) {
  return part_of(a, Part::StrictlyLower) + part_of(a, Part::Diagonal) * 0.5;
}

bool is_empty_matrix(Value a) { return rows_of(a).is(0) || columns_of(a).is(0); }

}  // namespace

// With Φ the lower triangle and half of the diagonal: t_l = l Φ(l⁻¹ herm(t_a) l⁻ᴴ).
Tangents jvp(const op::Cholesky&, JvpContext& c) {
  const Value l = c.result();
  const Value left = solved(l, hermitian_part(c.tangent(0)), LowerTriangle);
  return {matmul(l, half_lower(solved_adjoint_from_right(left, l, LowerTriangle)))};
}

// da = herm(l⁻ᴴ Φ(lᴴ g) l⁻¹)
Cotangents vjp(const op::Cholesky&, const VjpContext& c) {
  const Value l = c.result();
  const Value inner = half_lower(matmul(adjoint(l), c.cotangent()));
  return {
      hermitian_part(solved_from_right(solved_adjoint(l, inner, LowerTriangle), l, LowerTriangle))};
}

BatchedValues batch(const op::Cholesky& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

namespace {

// The rows of a in the order of a permutation: which row each comes from, for every element.
Value row_index(Value permutation, const Dims& dims) {
  return broadcast_to(as_column(permutation), dims);
}

// The packed factors of [M, N] as square ones with a 1 on the rest of their diagonals: l [M, M],
// u [N, N].
struct SquareFactors {
  Value l;
  Value u;

  explicit SquareFactors(Value lu) {
    const Dim m = rows_of(lu);
    const Dim n = columns_of(lu);
    const Dim k = (m - n).try_value().value_or(0) < 0 ? m : n;
    l = extended(part_of(first_columns(lu, k), Part::StrictlyLower), m) +
        identity(lu.graph(), m, lu.dtype());
    u = part_of(extended(first_rows(lu, k), n), Part::Upper);
    if (!(k == n)) u = u + on_diagonal(ones_behind(u, k));
  }

 private:
  // Zeros behind the rows and columns, up to a square of n.
  static Value extended(Value a, const Dim& n) {
    Dims low(a.rank(), Dim(0));
    Dims high = low;
    high[a.rank() - 2] = n - rows_of(a);
    high[a.rank() - 1] = n - columns_of(a);
    if (high[a.rank() - 2].is(0) && high[a.rank() - 1].is(0)) return a;
    return pad(a, zero_like(a), {.low = std::move(low), .high = std::move(high)});
  }
  // [n]: 0 before k, 1 from there on.
  static Value ones_behind(Value like, const Dim& k) {
    const Value index =
        iota(like.graph(), {.shape = {columns_of(like)}, .axis = 0, .dtype = DType::I64});
    const Value limit = size_as_number(k, index);
    return cast_to(ge(index, limit), like.dtype());
  }
};

}  // namespace

ForwardResults forward_keeping(const op::Lu&, const ForwardContext& c) {
  return keeping_all_results(c);
}

// With W = l⁻¹ t_a[permutation] u⁻¹:  t_l = l tril(W, -1), t_u = triu(W) u, in one array.
Tangents jvp(const op::Lu&, JvpContext& c) {
  const std::vector<Value> all = all_results(c);
  if (!c.node().wanted[0] || is_empty_matrix(all[0])) return c.none();
  const SquareFactors f(all[0]);
  const Value t = c.tangent(0);
  const Value moved = take_along_axis(t, row_index(all[2], t.dims()), {.axis = row_axis(t)});
  const Value w = solved_from_right(solved(f.l, moved, UnitLowerTriangle), f.u, UpperTriangle);
  return {matmul(f.l, part_of(w, Part::StrictlyLower)) + matmul(part_of(w, Part::Upper), f.u),
          Value(), Value()};
}

// da[permutation] = l⁻ᴴ (tril(lᴴ g, -1) + triu(g uᴴ)) u⁻ᴴ
Cotangents vjp(const op::Lu&, const VjpContext& c) {
  const Value g = c.cotangent(0);
  if (!g.valid()) return c.none();
  if (is_empty_matrix(g)) return gradient_of_nothing(c);
  const SquareFactors f(c.residuals()[0]);
  const Value inner = part_of(matmul(adjoint(f.l), g), Part::StrictlyLower) +
                      part_of(matmul(g, adjoint(f.u)), Part::Upper);
  const Value moved =
      solved_adjoint_from_right(solved_adjoint(f.l, inner, UnitLowerTriangle), f.u, UpperTriangle);
  return {scatter_add_along_axis(moved, row_index(c.residuals()[2], moved.dims()),
                                 {.axis = row_axis(moved), .axis_size = rows_of(moved)})};
}

BatchedValues batch(const op::Lu& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

namespace {

// How q turns: the skew part of C = qᴴ t_a r⁻¹ that its strictly lower triangle gives, and the
// imaginary part of its diagonal, so that the diagonal of r stays real.
Value turning(Value c) {
  const Value below = part_of(c, Part::StrictlyLower);
  const Value skew = below - adjoint(below);
  if (!is_complex(c.dtype())) return skew;
  return skew + part_of((c - conjugate(c)) * 0.5, Part::Diagonal);
}
// Its transpose.
Value turning_transposed(Value y) {
  const Value below = part_of(y - adjoint(y), Part::StrictlyLower);
  if (!is_complex(y.dtype())) return below;
  return below + part_of((y - conjugate(y)) * 0.5, Part::Diagonal);
}

bool is_wide(Value a) { return (columns_of(a) - rows_of(a)).try_value().value_or(0) > 0; }

// Of a wide matrix [a₁ a₂], a₁ square: q r₁ = a₁, r₂ = qᴴ a₂.
std::vector<Value> by_square_part(Value a) {
  const Dim m = rows_of(a);
  const auto [q, r] = qr(first_columns(a, m));
  const Value rest = narrow(a, {.axis = column_axis(a), .start = m, .len = columns_of(a) - m});
  return {q, concat(std::array{r, matmul(adjoint(q), rest)}, {.axis = column_axis(a)})};
}

Rewriting wide_rewriting(const std::vector<bool>& wanted) {
  return [wanted](Graph&, std::span<const Value> operands) {
    std::vector<Value> out = by_square_part(operands[0]);
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (!wanted[r]) out[r] = Value();
    }
    return out;
  };
}

}  // namespace

ForwardResults forward_keeping(const op::Qr&, const ForwardContext& c) {
  return keeping_all_results(c);
}

// With B = t_a r⁻¹, C = qᴴ B, T = turning(C):  t_q = q (T - C) + B, t_r = (C - T) r.
Tangents jvp(const op::Qr&, JvpContext& c) {
  if (is_empty_matrix(c[0])) return c.none();
  if (is_wide(c[0])) return c.through(wide_rewriting(c.node().wanted));
  const std::vector<Value> all = all_results(c);
  const Value b = solved_from_right(c.tangent(0), all[1], UpperTriangle);
  const Value inner = matmul(adjoint(all[0]), b);
  const Value still = inner - turning(inner);
  Tangents out = c.none();
  if (c.node().wanted[0]) out[0] = b - matmul(all[0], still);
  if (c.node().wanted[1]) out[1] = matmul(still, all[1]);
  return out;
}

// With Y = qᴴ g_q - g_r rᴴ:  da = (g_q + q (Tᵀ(Y) - Y)) r⁻ᴴ
Cotangents vjp(const op::Qr&, const VjpContext& c) {
  if (is_empty_matrix(c[0])) return gradient_of_nothing(c);
  if (is_wide(c[0])) {
    std::vector<bool> live;
    for (std::size_t r = 0; r < 2; ++r) live.push_back(c.cotangent(r).valid());
    return c.through(wide_rewriting(live));
  }
  const Value q = c.residuals()[0];
  const Value r = c.residuals()[1];
  const Value g_q = c.cotangent(0);
  Value y = g_q.valid() ? matmul(adjoint(q), g_q) : Value();
  if (c.cotangent(1).valid()) y = sum_of(y, -matmul(c.cotangent(1), adjoint(r)));
  if (!y.valid()) return c.none();
  const Value g = sum_of(g_q, matmul(q, turning_transposed(y) - y));
  return {solved_adjoint_from_right(g, r, UpperTriangle)};
}

BatchedValues batch(const op::Qr& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

}  // namespace ricci::rule
