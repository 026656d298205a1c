// Derivatives of complex programs: the convention, whole matrices of them, and what is refused.
#include <complex>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/build/elementwise.h"
#include "ricci/build/linalg.h"
#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/transform/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"

#include "support/compare.h"

namespace ricci::testing::transform_complex_test {
namespace {

using Complex = std::complex<double>;

constexpr Complex I(0, 1);

Type complex_type(Dims dims) { return {DType::C128, std::move(dims)}; }
Type real_type(Dims dims) { return {DType::F64, std::move(dims)}; }

Tensor complexes(const Dims& dims, const std::vector<Complex>& numbers) {
  return Tensor::from_numbers<Complex>(complex_type(dims), numbers);
}

std::vector<Complex> numbers_of(const Tensor& t) { return t.numbers<Complex>(); }

void expect_near(Complex actual, Complex expected, double tolerance = 1e-12) {
  EXPECT_NEAR(actual.real(), expected.real(), tolerance);
  EXPECT_NEAR(actual.imag(), expected.imag(), tolerance);
}

// The example of docs/COMPLEX.md: L = |z|², whose gradient ∂L/∂z̄ is z. Along the steps of descent
// z - 2η·∂L/∂z̄ both parts move as if they were real parameters of their own.
TEST(ComplexDerivatives, AreByTheConjugate) {
  Graph g("length");
  const Value z = g.input("z", complex_type({2}));
  g.set_outputs({sum(complex_norm_sq(z))});
  const Tensor at = complexes({2}, {{1, 2}, {-3, 0.5}});
  const auto out = interpret(value_and_grad(g, {"z"}).graph, {{"z", at}});
  EXPECT_TRUE(close(out[1], at));
}

TEST(ComplexDerivatives, OfPartsAndPolarFormsCloseTheConvention) {  // [CX-01]
  // The same real function of four real numbers, with complex numbers on the way and without.
  Graph g("through");
  const Value a = g.input("a", real_type({3}));
  const Value b = g.input("b", real_type({3}));
  const Value z = make_complex(a, b);
  const Value w = polar(abs(z), angle(z) * 2.0) * conjugate(z) + square(z);
  g.set_outputs({sum(real(w) * 3.0 + imag(w) + abs(w))});
  Graph h("without");
  const Value p = h.input("a", real_type({3}));
  const Value q = h.input("b", real_type({3}));
  const Value r = hypot(p, q);
  const Value t = atan2(q, p);
  // w = r²·e^{it} + z²
  const Value x = square(r) * cos(t) + square(p) - square(q);
  const Value y = square(r) * sin(t) + p * q * 2.0;
  h.set_outputs({sum(x * 3.0 + y + hypot(x, y))});
  const Feeds feeds{{"a", random_tensor(1, real_type({3}), -2, 2)},
                    {"b", random_tensor(2, real_type({3}), -2, 2)}};
  const auto through = interpret(value_and_grad(g, {"a", "b"}).graph, feeds);
  const auto without = interpret(value_and_grad(h, {"a", "b"}).graph, feeds);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(close(through[i], without[i], {1e-11, 1e-11}));
}

TEST(ComplexDerivatives, OfAbsAreZeroAtZero) {
  Graph g("kink");
  const Value z = g.input("z", complex_type({2}));
  g.set_outputs({sum(abs(z))});
  const Tensor at = complexes({2}, {{0, 0}, {3, 4}});
  const auto out = interpret(value_and_grad(g, {"z"}).graph, {{"z", at}});
  const auto d = numbers_of(out[1]);
  expect_near(d[0], 0);
  expect_near(d[1], {0.3, 0.4});
}

// f(z) = (z₀·z₁, e^{z₀}): holomorphic, the derivative is one number.
TEST(ComplexJacobians, OfHolomorphicFunctionsAreTheirDerivatives) {
  Graph g("holomorphic");
  const Value z = g.input("z", complex_type({2}));
  const Value first = narrow(z, {.axis = 0, .start = 0, .len = 1});
  const Value second = narrow(z, {.axis = 0, .start = 1, .len = 1});
  g.set_outputs({concat(std::array{first * second, exp(first)}, {.axis = 0})});
  const Complex a(0.3, -1.2);
  const Complex b(2, 0.7);
  const Feeds feeds{{"z", complexes({2}, {a, b})}};
  for (const Transformed& t : {jacfwd(g, {"z"}), jacrev(g, {"z"})}) {
    const auto j = numbers_of(interpret(t.graph, feeds)[0]);
    expect_near(j[0], b);
    expect_near(j[1], a);
    expect_near(j[2], std::exp(a));
    expect_near(j[3], 0);
  }
}

// Of a real function the rows are its gradients ∂y/∂z̄; of a complex function of a real x, ∂y/∂x.
TEST(ComplexJacobians, AgreeInBothModesAcrossRealAndComplex) {
  Graph g("mixed");
  const Value z = g.input("z", complex_type({2}));
  const Value x = g.input("x", real_type({3}));
  const Value turned =
      exp(cast_to(x, DType::C128) * g.constant(Tensor::splat(complex_type({}), I)));
  g.set_outputs(
      {concat(std::array{complex_norm_sq(z), abs(sin(z))}, {.axis = 0}) * sum(x), turned * sum(z)});
  const Feeds feeds{{"z", random_tensor(3, complex_type({2}))},
                    {"x", random_tensor(4, real_type({3}))}};
  const auto forward = interpret(jacfwd(g, {"z", "x"}).graph, feeds);
  const auto reverse = interpret(jacrev(g, {"z", "x"}).graph, feeds);
  ASSERT_EQ(forward.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(close(forward[i], reverse[i])) << i;
  // ∂|z|²/∂z̄ = z
  const auto at = numbers_of(feeds.at("z"));
  const double total = feeds.at("x").numbers<double>()[0] + feeds.at("x").numbers<double>()[1] +
                       feeds.at("x").numbers<double>()[2];
  expect_near(numbers_of(forward[0])[0], at[0] * total);
  EXPECT_EQ(forward[1].dtype(), DType::F64);
  // ∂e^{ix}/∂x = i·e^{ix}
  const double x0 = feeds.at("x").numbers<double>()[0];
  expect_near(numbers_of(forward[3])[0], I * std::exp(I * x0) * (at[0] + at[1]));
}

TEST(ComplexJacobians, AreRefusedWhereTheyAreNoSingleNumber) {
  const auto refusal = [](const auto& build) -> std::string {
    Graph g("not_holomorphic");
    const Value z = g.input("z", complex_type({2, 2}));
    g.set_outputs({build(z)});
    std::string forward;
    try {
      (void)jacfwd(g, {"z"});
    } catch (const AutodiffError& e) {
      EXPECT_EQ(e.code(), ErrorCode::Refused);
      forward = e.what();
    }
    try {
      (void)jacrev(g, {"z"});
    } catch (const AutodiffError& e) {
      EXPECT_EQ(forward, e.what());
      return forward;
    }
    return "";
  };
  EXPECT_NE(refusal([](Value z) { return conjugate(z); }).find("'conjugate'"), std::string::npos);
  EXPECT_NE(refusal([](Value z) { return cast_to(abs(z), DType::C128); }).find("'abs'"),
            std::string::npos);
  EXPECT_NE(refusal([](Value z) { return qr(z)[0]; }).find("'qr'"), std::string::npos);
  EXPECT_EQ(refusal([](Value z) { return inv(z); }), "");
  EXPECT_EQ(
      refusal([](Value z) {
        return conv(
            reshape_to(z, {1, 1, 4}),
            reshape_to(z, {1, 2, 2}).graph().constant(Tensor::splat(complex_type({1, 1, 2}), I)),
            {});
      }),
      "");
}

// ∂²f/∂z² of a holomorphic f; ∂²L/∂z̄∂z of a real L, Hermitian.
TEST(ComplexHessians, AreThoseOfHolomorphicAndOfRealFunctions) {
  Graph g("cubic");
  const Value z = g.input("z", complex_type({2}));
  g.set_outputs({sum(z * z * z)});
  const Complex a(0.3, -1.2);
  const Complex b(2, 0.7);
  const Feeds feeds{{"z", complexes({2}, {a, b})}};
  const auto h = numbers_of(interpret(hessian(g, {"z"}).graph, feeds)[0]);
  expect_near(h[0], 6.0 * a);
  expect_near(h[1], 0);
  expect_near(h[3], 6.0 * b);

  // L = (z^H A z)² for a Hermitian A: ∂²L/∂z̄∂z = 2·(q·A + A z z^H A), q = z^H A z
  Graph r("quartic");
  const Value w = r.input("z", complex_type({2}));
  const std::vector<Complex> matrix{{2, 0}, {0.5, 1}, {0.5, -1}, {3, 0}};
  const Value m = r.constant(complexes({2, 2}, matrix));
  const Value mw = reshape_to(matmul(m, reshape_to(w, {2, 1})), {2});
  r.set_outputs({square(real(sum(conjugate(w) * mw)))});
  const auto found = numbers_of(interpret(hessian(r, {"z"}).graph, feeds)[0]);
  const std::array<Complex, 2> at{a, b};
  std::array<Complex, 2> product{};
  Complex q = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) product[i] += matrix[2 * i + j] * at[j];
    q += std::conj(at[i]) * product[i];
  }
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      expect_near(found[2 * i + j],
                  2.0 * (q * matrix[2 * i + j] + product[i] * std::conj(product[j])), 1e-11);
    }
  }
}

TEST(ComplexHessians, OfComplexFunctionsOfRealValuesAreRefused) {
  Graph g("turning");
  const Value x = g.input("x", real_type({}));
  g.set_outputs({exp(make_complex(x, x))});
  EXPECT_THROW((void)hessian(g, {"x"}), AutodiffError);
}

// The derivative of a loop's result by its complex carry.
TEST(ComplexJacobians, LookIntoBodies) {
  const auto looped = [](bool conjugates) {
    Graph g("loop");
    const Value z = g.input("z", complex_type({2}));
    const auto body = [&](Graph&, std::span<const Value> in) {
      return std::vector{in[0] * (conjugates ? conjugate(in[0]) : in[0])};
    };
    const Value yes = g.constant(Tensor::splat({DType::Bool, {}}, 1.0));
    g.set_outputs(cond(yes, std::array{z}, body, body));
    return g;
  };
  EXPECT_NO_THROW((void)jacrev(looped(false), {"z"}));
  EXPECT_THROW((void)jacrev(looped(true), {"z"}), AutodiffError);
}

}  // namespace
}  // namespace ricci::testing::transform_complex_test
