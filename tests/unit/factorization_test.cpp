// Linear algebra from factorisations: builders, points where values repeat or matrices are
// singular, second derivatives with a closed form, and gradients over batches.
#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/linalg.h"
#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"

namespace ricci::testing::factorization_test {
namespace {

using Doubles = std::vector<double>;
using Build = std::function<Value(Value)>;

Tensor matrix(Dims dims, const Doubles& values) {
  return Tensor::from_numbers<double>(f64(std::move(dims)), values);
}

Graph graph_of(const Type& type, const Build& build) {
  Graph g;
  g.set_outputs({build(g.input("a", type))});
  return g;
}

Tensor value_at(const Tensor& a, const Build& build) {
  return interpret(graph_of(a.type(), build), {{"a", a}})[0];
}
Tensor gradient_at(const Tensor& a, const Build& build) {
  return interpret(value_and_grad(graph_of(a.type(), build), {"a"}).graph, {{"a", a}})[1];
}

bool is_finite(const Tensor& t) {
  for (const std::complex<double> z : t.numbers<std::complex<double>>()) {
    if (!std::isfinite(z.real()) || !std::isfinite(z.imag())) return false;
  }
  return true;
}

// Well-conditioned matrices of any field.
Tensor regular(std::uint64_t seed, DType dtype, Dims dims, double shift = 3) {
  const Type type{dtype, std::move(dims)};
  auto numbers = random_tensor(seed, type, -1, 1).numbers<std::complex<double>>();
  const std::int64_t n = type.dims.back().value();
  const std::int64_t m = type.dims[type.rank() - 2].value();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i) % (m * n);
    if (at / n == at % n) numbers[i] += shift;
  }
  return Tensor::from_numbers<std::complex<double>>(type, numbers);
}

Value squares(Value x) {
  return is_complex(x.dtype()) ? cast_to(x * conjugate(x), DType::F64) : x * x;
}
Value conjugate_transposed(Value a) {
  const Value t = transpose_last(a);
  return is_complex(a.dtype()) ? conjugate(t) : t;
}

// Of a matrix [N, N].
Value diagonal(Value a) {
  const std::int64_t n = a.dims().back().value();
  const Value padded = pad(reshape_to(a, {n * n}), scalar_like(a, 0), {.low = {0}, .high = {n}});
  const Value first = narrow(reshape_to(padded, {n, n + 1}), {.axis = 1, .start = 0, .len = 1});
  return reshape_to(first, {n});
}

class FactorizationsIn : public ::testing::TestWithParam<DType> {};

TEST_P(FactorizationsIn, InversesAndSolutionsUndoProducts) {
  const Tensor a = regular(1, GetParam(), {2, 3, 4, 4});
  const Tensor one = value_at(a, [](Value x) { return matmul(inv(x), x) - matrix_power(x, 0); });
  for (const auto z : one.numbers<std::complex<double>>()) EXPECT_LT(std::abs(z), 1e-13);
  const Tensor rest = value_at(a, [](Value x) {
    const Value b = narrow(x, {.axis = 3, .start = 1, .len = 2});
    return matmul(x, solve(x, b)) - b;
  });
  for (const auto z : rest.numbers<std::complex<double>>()) EXPECT_LT(std::abs(z), 1e-13);
}

TEST_P(FactorizationsIn, SystemsWithOneMatrixAreColumnsOfOne) {
  Graph g;
  const Value a = g.input("a", Type{GetParam(), {3, 3}});
  const Value b = g.input("b", Type{GetParam(), {2, 4, 3, 2}});
  g.set_outputs({matmul(a, solve(a, b)) - b});
  const Tensor rest = interpret(g, {{"a", regular(2, GetParam(), {3, 3})},
                                    {"b", random_tensor(3, Type{GetParam(), {2, 4, 3, 2}})}})[0];
  for (const auto z : rest.numbers<std::complex<double>>()) EXPECT_LT(std::abs(z), 1e-13);
}

TEST_P(FactorizationsIn, SignAndLogarithmMakeTheDeterminant) {
  const Tensor a = regular(4, GetParam(), {2, 4, 4}, 0);
  const Tensor gap = value_at(a, [](Value x) {
    const SignAndLog d = slogdet(x);
    return d.sign * cast_to(exp(d.log_abs), x.dtype()) - det(x);
  });
  for (const auto z : gap.numbers<std::complex<double>>()) EXPECT_LT(std::abs(z), 1e-13);
}

TEST_P(FactorizationsIn, TriangularFactorsMakeThePermutedMatrix) {
  for (const Dims& dims : {Dims{5, 3}, Dims{3, 5}, Dims{4, 4}}) {
    const Tensor a = random_tensor(5, Type{GetParam(), dims});
    const Tensor gap = value_at(a, [](Value x) {
      const LuFactors f = lu_factors(x);
      return matmul(f.l, f.u) - gather(x, f.permutation);
    });
    for (const auto z : gap.numbers<std::complex<double>>()) EXPECT_LT(std::abs(z), 1e-14);
  }
}

TEST_P(FactorizationsIn, LeastSquaresLeavesAnOrthogonalRest) {
  Graph g;
  const Value a = g.input("a", Type{GetParam(), {5, 3}});
  const Value b = g.input("b", Type{GetParam(), {5}});
  const Value column = reshape_to(b, {5, 1});
  const Value rest = matmul(a, reshape_to(lstsq(a, b), {3, 1})) - column;
  g.set_outputs({matmul(conjugate_transposed(a), rest)});
  const Tensor out = interpret(g, {{"a", random_tensor(6, Type{GetParam(), {5, 3}})},
                                   {"b", random_tensor(7, Type{GetParam(), {5}})}})[0];
  for (const auto z : out.numbers<std::complex<double>>()) EXPECT_LT(std::abs(z), 1e-13);
}

TEST_P(FactorizationsIn, CholeskySolvesWithItsFactor) {
  const Tensor a = regular(8, GetParam(), {4, 4}, 6);
  const Tensor gap = value_at(a, [](Value x) {
    const Value h = (x + conjugate_transposed(x)) * 0.5;
    return matmul(h, cholesky_solve(cholesky(h), x)) - x;
  });
  for (const auto z : gap.numbers<std::complex<double>>()) EXPECT_LT(std::abs(z), 1e-13);
}

TEST_P(FactorizationsIn, BuildersHaveDerivatives) {
  const std::vector<std::pair<const char*, Build>> builders = {
      {"inv", [](Value a) { return inv(a); }},
      {"sign", [](Value a) { return slogdet(a).sign; }},
      {"log_abs", [](Value a) { return slogdet(a).log_abs; }},
      {"power", [](Value a) { return matrix_power(a, -3); }},
      {"trace", [](Value a) { return trace(a); }},
      {"lstsq", [](Value a) { return lstsq(a, a); }},
      {"frobenius", [](Value a) { return matrix_norm(a); }},
      {"nuclear", [](Value a) { return matrix_norm(a, MatrixNorm::Nuclear); }},
      {"spectral", [](Value a) { return matrix_norm(a, MatrixNorm::Spectral); }},
      {"one", [](Value a) { return matrix_norm(a, MatrixNorm::One); }},
      {"infinity", [](Value a) { return matrix_norm(a, MatrixNorm::Infinity); }},
  };
  for (const auto& [name, build] : builders) {
    SCOPED_TRACE(name);
    const Tensor a = regular(9, GetParam(), {3, 3}, 2);
    const DerivativeProbe d = probe_derivatives(graph_of(a.type(), build), {"a"}, {{"a", a}}, 11);
    EXPECT_TRUE(d.finite());
    EXPECT_LE(d.adjoint_gap(), 1e-11);
    EXPECT_LE(d.difference_gap(), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Fields, FactorizationsIn, ::testing::Values(DType::F64, DType::C128),
                         [](const auto& d) { return std::string(name(d.param)); });

TEST(Factorizations, RanksCountWhatIsMoreThanRounding) {
  const Tensor a = matrix({3, 2, 2}, {1, 2, 2, 4, 1, 0, 0, 1, 0, 0, 0, 0});
  EXPECT_EQ(value_at(a, [](Value x) { return matrix_rank(x); }).numbers<std::int64_t>(),
            (std::vector<std::int64_t>{1, 2, 0}));
}

// Squares of these would overflow or vanish.
TEST(Factorizations, LargeAndSmallNumbersAreScaled) {
  for (const double by : {1e200, 1e-200}) {
    const Tensor a = matrix({2, 2}, {6 * by, 2 * by, 2 * by, 3 * by});
    EXPECT_TRUE(close(value_at(a, [](Value x) { return eigvalsh(x); }),
                      matrix({2}, {2 * by, 7 * by}), {1e-14, 0}));
    EXPECT_TRUE(close(value_at(a, [](Value x) { return svdvals(x); }),
                      matrix({2}, {7 * by, 2 * by}), {1e-14, 0}));
  }
}

TEST(Factorizations, MatricesThatAreNoneAreRefused) {
  Graph g;
  const Value v = g.input("v", f64({3}));
  const Value wide = g.input("w", f64({2, 3}));
  for (const Value x : {v, wide}) {
    EXPECT_THROW((void)inv(x), UserError);
    EXPECT_THROW((void)slogdet(x), UserError);
    EXPECT_THROW((void)trace(x), UserError);
    EXPECT_THROW((void)matrix_power(x, 2), UserError);
    EXPECT_THROW((void)solve(x, v), UserError);
  }
  EXPECT_THROW((void)matrix_norm(v), UserError);
  EXPECT_THROW((void)lstsq(v, v), UserError);
}

TEST(Factorizations, ASingularMatrixHasNoInverseButALogarithm) {
  const Tensor a = matrix({2, 2}, {1, 2, 2, 4});
  EXPECT_THROW((void)value_at(a, [](Value x) { return inv(x); }), UserError);
  EXPECT_EQ(value_at(a, [](Value x) { return slogdet(x).sign; }).numbers<double>()[0], 0);
  EXPECT_EQ(value_at(a, [](Value x) { return slogdet(x).log_abs; }).numbers<double>()[0],
            -std::numeric_limits<double>::infinity());
}

// The derivative of det is the matrix of cofactors, whatever the rank.
TEST(Factorizations, TheDeterminantHasAGradientWhereItVanishes) {
  const auto gradient = [](const Doubles& a) {
    return gradient_at(matrix({3, 3}, a), [](Value x) { return det(x); });
  };
  EXPECT_TRUE(close(gradient({1, 2, 3, 2, 4, 6, 1, 0, 1}),
                    matrix({3, 3}, {4, 4, -4, -2, -2, 2, 0, 0, 0}), {1e-14, 1e-14}));
  EXPECT_TRUE(
      close(gradient({1, 2, 3, 2, 4, 6, 3, 6, 9}), matrix({3, 3}, Doubles(9, 0)), {1e-14, 1e-14}));
  EXPECT_TRUE(close(gradient(Doubles(9, 0)), matrix({3, 3}, Doubles(9, 0))));
}

// Eigenvalues that repeat: what does not depend on the basis of their space is differentiated as if
// nothing were special, and nothing is infinite.
TEST(Factorizations, RepeatedEigenvaluesHaveFiniteGradients) {
  const Tensor a = matrix({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 3});
  const Tensor of_values = gradient_at(a, [](Value x) { return sum(squares(eigvalsh(x))); });
  EXPECT_TRUE(close(of_values, matrix({3, 3}, {2, 0, 0, 0, 2, 0, 0, 0, 6}), {1e-14, 1e-14}));
  const auto weighted = [](Value p) {
    return sum(p * p.graph().constant(matrix({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})));
  };
  const auto projector = [&](Value x) {
    const Value v = narrow(eigh(x)[1], {.axis = 1, .start = 2, .len = 1});
    return weighted(matmul(v, transpose_last(v)));
  };
  // d(v vᵀ) = (e₃ tᵀ + t e₃ᵀ)/2 over the gap of 2, with t = A's change in the last column.
  EXPECT_TRUE(close(gradient_at(a, projector), matrix({3, 3}, {0, 0, 2.5, 0, 0, 3.5, 2.5, 3.5, 0}),
                    {1e-14, 1e-14}));
  EXPECT_TRUE(is_finite(gradient_at(a, [&](Value x) { return weighted(eigh(x)[1]); })));
  const Graph second =
      hvp(graph_of(a.type(), [&](Value x) { return weighted(eigh(x)[1]); }), {"a"}).graph;
  EXPECT_TRUE(
      is_finite(interpret(second, {{"a", a}, {"tangent_a", random_tensor(1, a.type())}}).back()));
}

TEST(Factorizations, RepeatedAndVanishingSingularValuesHaveFiniteGradients) {
  const Tensor turned = matrix({2, 2}, {0, -1, 1, 0});
  const Tensor of_norm =
      gradient_at(turned, [](Value x) { return matrix_norm(x, MatrixNorm::Nuclear); });
  EXPECT_TRUE(close(of_norm, turned, {1e-14, 1e-14}));
  for (const Tensor& a : {turned, matrix({2, 2}, {1, 2, 2, 4}), matrix({3, 2}, Doubles(6, 0)),
                          matrix({2, 3}, {1, 2, 3, 2, 4, 6})}) {
    EXPECT_TRUE(is_finite(gradient_at(a, [](Value x) {
      const auto [u, s, vh] = svd(x);
      return sum(u) + sum(s) + sum(vh * vh * vh);
    })));
  }
}

// The Hessian of log det A in the direction V is -A⁻¹ V A⁻¹.
TEST(Factorizations, SecondDerivativesOfTheLogarithmOfADeterminantAgree) {
  const Tensor random = regular(12, DType::F64, {4, 4}, 6);
  const Tensor a = value_at(random, [](Value x) { return (x + transpose_last(x)) * 0.5; });
  const Tensor v =
      value_at(random_tensor(13, a.type()), [](Value x) { return (x + transpose_last(x)) * 0.5; });
  Graph closed;
  const Value inverse = inv(closed.input("a", a.type()));
  closed.set_outputs({-matmul(matmul(inverse, closed.input("v", a.type())), inverse)});
  const Tensor expected = interpret(closed, {{"a", a}, {"v", v}})[0];
  const std::vector<std::pair<const char*, Build>> ways = {
      {"slogdet", [](Value x) { return slogdet(x).log_abs; }},
      {"eigh", [](Value x) { return sum(log(eigvalsh(x))); }},
      {"svd", [](Value x) { return sum(log(svdvals(x))); }},
      {"det", [](Value x) { return log(det(x)); }},
      {"cholesky", [](Value x) { return sum(log(diagonal(cholesky(x)))) * 2.0; }},
  };
  for (const auto& [name, build] : ways) {
    SCOPED_TRACE(name);
    const Transformed h = hvp(graph_of(a.type(), build), {"a"});
    EXPECT_TRUE(
        close(interpret(h.graph, {{"a", a}, {"tangent_a", v}}).back(), expected, {1e-11, 1e-11}));
  }
}

TEST(Factorizations, GradientsOverABatchAreThoseOfItsExamples) {
  const Build loss = [](Value x) {
    const auto [w, v] = eigh(x);
    const auto [u, s, vh] = svd(x);
    return sum(squares(v) * w) + sum(squares(u)) + sum(log(s)) + log(det(matmul(x, x)));
  };
  const Tensor all = regular(14, DType::F64, {3, 3, 3}, 2);
  const Graph one = value_and_grad(graph_of(f64({3, 3}), loss), {"a"}).graph;
  const Tensor batched = interpret(vmap(one, {{"a"}}, 3).graph, {{"a", all}})[1];
  for (std::int64_t i = 0; i < 3; ++i) {
    const Tensor a = all.narrowed(0, i, 1).reshaped({3, 3});
    EXPECT_TRUE(same(batched.narrowed(0, i, 1).reshaped({3, 3}), interpret(one, {{"a", a}})[1]));
  }
}

}  // namespace
}  // namespace ricci::testing::factorization_test
