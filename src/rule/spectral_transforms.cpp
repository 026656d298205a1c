// Derivatives and batching of eigenvalues and singular values.
//
// Vectors are fixed up to a phase by orthonormality, and that phase by one component that is kept
// real: forward rules take the turn of that component out of the tangents, reverse rules do the
// transposed. Real vectors have no phase to speak of.
#include "ricci/build/reduce.h"

#include "build/matrix_parts.h"
#include "rule/derivative_parts.h"
#include "rule/factor_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"
#include "type/epsilon.h"

namespace ricci::rule {
namespace {

using namespace ricci::matrix;

// Real values as numbers of a matrix's dtype; a complex cotangent stands for half the gradient of
// each part.
Value real_cotangent(Value g, DType dtype) {
  return is_complex(dtype) ? cast_to(g, dtype) * 0.5 : g;
}
Value real_tangent(Value t) { return cast_to(t, real_part_of(t.dtype())); }

// How far values differ by rounding, [.., 1]: of values [.., K] from a matrix of this size.
Value rounding_of(Value values, const Dim& size) {
  const Value largest = reduce(abs(values), {.op = ReduceKind::Max,
                                             .axes = {static_cast<std::int64_t>(values.rank()) - 1},
                                             .keep_dim = true});
  return largest * size_as_number(size, values) * epsilon_of(values.dtype());
}

// 1/x where a condition holds, 0 elsewhere.
Value inverse_where(Value condition, Value x) {
  const Value safe = where(condition, x, scalar_like(x, 1));
  return where(condition, reciprocal(safe), scalar_like(x, 0));
}

// Differences x_j - x_i, [.., i, j], and where they are more than rounding.
struct Gaps {
  Value gap;
  Value distinct;
};
Gaps gaps_of(Value x, Value rounding) {
  const Value gap = as_row(x) - as_column(x);
  return {gap, gt(abs(gap), as_column(rounding))};
}

Value sum_of_rows(Value a) { return sum(a, {row_axis(a)}, true); }
Value twice_imaginary(Value z) { return z - conjugate(z); }

// Where the component is that phases are fixed by, and its (real) value: [.., 1, K].
struct FixedComponents {
  Value at;
  Value value;

  explicit FixedComponents(Value v) {
    const Value size = real_tangent(v * conjugate(v));
    const Value largest =
        reduce(size, {.op = ReduceKind::Max, .axes = {row_axis(v)}, .keep_dim = true});
    const Value large = cast_to(gt(size, largest * (0.75 * 0.75)), DType::I32);
    const Value first = sum_of_rows_before(large);
    at = logical_and(gt(large, 0.0), eq(first, 0.0));
    value = cast_to(real_tangent(picked(v)), v.dtype());
  }
  [[nodiscard]] Value picked(Value a) const { return sum_of_rows(where(at, a, scalar_like(a, 0))); }

 private:
  static Value sum_of_rows_before(Value a) {
    return cumsum(a, {.axis = row_axis(a), .exclusive = true});
  }
};

// t - v·i·θ, where i·θ is how the fixed components would turn.
Value turn_of(const FixedComponents& fixed, Value t) {
  return twice_imaginary(fixed.picked(t)) / (fixed.value * 2.0);
}
// Its transpose: `along` is Σ v̄·g, what the cotangents say to a turn of the vectors.
Value against_turn(const FixedComponents& fixed, Value g, Value along) {
  const Value share = twice_imaginary(along) / (fixed.value * 2.0);
  return g - where(fixed.at, share, scalar_like(g, 0));
}

bool has_no_values(Value values) { return values.dims().back().is(0); }

// 1/(w_j - w_i) for values that differ, 0 for others.
Value eigen_factors(Value w, DType dtype) {
  const Gaps gaps = gaps_of(w, rounding_of(w, w.dims().back()));
  return cast_to(inverse_where(gaps.distinct, gaps.gap), dtype);
}

// What derivatives of a = u diag(s) vᴴ are made of.
struct SingularParts {
  Value u;
  Value s;  ///< of the matrix's dtype
  Value v;
  Value factors;  ///< 1/(s_j² - s_i²) for values that differ
  Value inverse;  ///< 1/s for values that are not 0
  bool tall;
  bool wide;

  SingularParts(Value u_in, Value s_in, Value vh)
      : u(u_in),
        s(cast_to(s_in, u_in.dtype())),
        v(adjoint(vh)),
        tall(!(rows_of(u_in) == columns_of(u_in))),
        wide(!(columns_of(vh) == rows_of(vh))) {
    const Dim size = tall ? rows_of(u) : columns_of(vh);
    const Value rounding = rounding_of(s_in, size);
    const Gaps gaps = gaps_of(s_in, rounding);
    const Value sums = as_row(s_in) + as_column(s_in);
    factors = cast_to(inverse_where(gaps.distinct, gaps.gap * sums), u.dtype());
    inverse = cast_to(inverse_where(gt(s_in, rounding), s_in), u.dtype());
  }
};

}  // namespace

ForwardResults forward_keeping(const op::Eigh&, const ForwardContext& c) {
  return keeping_all_results(c);
}

// With D = vᴴ t v, t Hermitian: t_w = diag(D), t_v = v (F ∘ D), F_ij = 1/(w_j - w_i).
Tangents jvp(const op::Eigh&, JvpContext& c) {
  const std::vector<Value> all = all_results(c);
  const Value w = all[0];
  const Value v = all[1];
  if (has_no_values(w)) return c.none();
  const Value d = matmul(matmul(adjoint(v), hermitian_part(c.tangent(0))), v);
  Tangents out = c.none();
  if (c.node().wanted[0]) out[0] = real_tangent(diagonal_of(d));
  if (!c.node().wanted[1]) return out;
  const Value t = matmul(v, eigen_factors(w, v.dtype()) * d);
  out[1] = is_complex(v.dtype()) ? t - v * turn_of(FixedComponents(v), t) : t;
  return out;
}

// da = herm(v (diag(g_w) + F ∘ (vᴴ g_v)) vᴴ)
Cotangents vjp(const op::Eigh&, const VjpContext& c) {
  const Value w = c.residuals()[0];
  const Value v = c.residuals()[1];
  const Value vh = adjoint(v);
  if (has_no_values(w)) return gradient_of_nothing(c);
  Value left;  // what stands before vᴴ
  if (c.cotangent(0).valid()) left = v * as_row(real_cotangent(c.cotangent(0), v.dtype()));
  if (Value g = c.cotangent(1); g.valid()) {
    if (is_complex(v.dtype())) {
      g = against_turn(FixedComponents(v), g, sum_of_rows(conj(v) * g));
    }
    left = sum_of(left, matmul(v, eigen_factors(w, v.dtype()) * matmul(vh, g)));
  }
  if (!left.valid()) return c.none();
  return {hermitian_part(matmul(left, vh))};
}

BatchedValues batch(const op::Eigh& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

ForwardResults forward_keeping(const op::Svd&, const ForwardContext& c) {
  return keeping_all_results(c);
}

// With D = uᴴ t v and S = diag(s):
//   t_s = re diag(D)
//   t_u = u (F ∘ (D S + S Dᴴ) + i·im diag(D) S⁻¹) + (1 - u uᴴ) t v S⁻¹
//   t_v = v (F ∘ (S D + Dᴴ S)) + (1 - v vᴴ) tᴴ u S⁻¹,   F_ij = 1/(s_j² - s_i²)
Tangents jvp(const op::Svd&, JvpContext& c) {
  const std::vector<Value> all = all_results(c);
  const std::vector<bool>& wanted = c.node().wanted;
  if (has_no_values(all[1])) return c.none();
  const Value t = c.tangent(0);
  const Value tv = matmul(t, adjoint(all[2]));
  const Value d = matmul(adjoint(all[0]), tv);
  Tangents out = c.none();
  if (wanted[1]) out[1] = real_tangent(diagonal_of(d));
  if (!wanted[0] && !wanted[2]) return out;
  const SingularParts p(all[0], all[1], all[2]);
  const Value ds = d * as_row(p.s);
  const Value sd = as_column(p.s) * d;
  Value t_u = matmul(p.u, p.factors * (ds + adjoint(ds)));
  Value t_v = matmul(p.v, p.factors * (sd + adjoint(sd)));
  if (p.tall) t_u += (tv - matmul(p.u, d)) * as_row(p.inverse);
  if (p.wide) {
    const Value tu = matmul(adjoint(t), p.u);
    t_v += (tu - matmul(p.v, adjoint(d))) * as_row(p.inverse);
  }
  if (is_complex(t.dtype())) {
    t_u += p.u * as_row(twice_imaginary(diagonal_of(d)) * p.inverse * 0.5);
    const Value turn = turn_of(FixedComponents(p.u), t_u);
    t_u -= p.u * turn;
    t_v -= p.v * turn;
  }
  if (wanted[0]) out[0] = t_u;
  if (wanted[2]) out[2] = adjoint(t_v);
  return out;
}

// With J = F ∘ (uᴴ g_u) and K = F ∘ (vᴴ g_v):
//   da = u ((J + Jᴴ) S + S (K + Kᴴ) + diag(g_s) + i·im diag(uᴴ g_u) S⁻¹) vᴴ
//        + (1 - u uᴴ) g_u S⁻¹ vᴴ + u S⁻¹ g_vᴴ (1 - v vᴴ)
Cotangents vjp(const op::Svd&, const VjpContext& c) {
  const Value vh = c.residuals()[2];
  if (has_no_values(c.residuals()[1])) return gradient_of_nothing(c);
  const DType dtype = vh.dtype();
  Value g_u = c.cotangent(0);
  Value g_v = c.cotangent(2).valid() ? adjoint(c.cotangent(2)) : Value();
  if (!g_u.valid() && !g_v.valid()) {
    if (!c.cotangent(1).valid()) return c.none();
    const Value scaled = c.residuals()[0] * as_row(real_cotangent(c.cotangent(1), dtype));
    return {matmul(scaled, vh)};
  }
  const SingularParts p(c.residuals()[0], c.residuals()[1], vh);
  if (is_complex(dtype)) {
    const Value along = sum_of(g_u.valid() ? sum_of_rows(conj(p.u) * g_u) : Value(),
                               g_v.valid() ? sum_of_rows(conj(p.v) * g_v) : Value());
    g_u = against_turn(FixedComponents(p.u), g_u.valid() ? g_u : zeros_like(p.u), along);
  }
  Value middle;
  if (c.cotangent(1).valid()) middle = on_diagonal(real_cotangent(c.cotangent(1), dtype));
  Value beside;  // outside the spaces of u and v
  if (g_u.valid()) {
    const Value ug = matmul(adjoint(p.u), g_u);
    const Value j = p.factors * ug;
    middle = sum_of(middle, (j + adjoint(j)) * as_row(p.s));
    if (is_complex(dtype)) {
      middle += on_diagonal(twice_imaginary(diagonal_of(ug)) * p.inverse * 0.5);
    }
    if (p.tall) beside = matmul((g_u - matmul(p.u, ug)) * as_row(p.inverse), vh);
  }
  if (g_v.valid()) {
    const Value vg = matmul(vh, g_v);
    const Value k = p.factors * vg;
    middle = sum_of(middle, as_column(p.s) * (k + adjoint(k)));
    if (p.wide) {
      const Value rest = adjoint(g_v - matmul(p.v, vg));
      beside = sum_of(beside, matmul(p.u * as_row(p.inverse), rest));
    }
  }
  return {sum_of(matmul(matmul(p.u, middle), vh), beside)};
}

BatchedValues batch(const op::Svd& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

}  // namespace ricci::rule
