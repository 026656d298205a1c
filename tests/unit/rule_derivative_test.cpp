// The table of derivatives against central differences, and its values where differences say
// nothing: kinks, ties and far away.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"

#include "rule/tables/derivative_table.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule::rule_derivative_test {
namespace {

constexpr double Inf = std::numeric_limits<double>::infinity();
const double NaN = std::numeric_limits<double>::quiet_NaN();

double slope(UnaryKind kind, double x) {
  return evaluate(*derivative(kind),
                  [&](Variable v) { return v == Variable::First ? x : eval_unary(kind, x); });
}

double slope(BinaryKind kind, std::size_t operand, double a, double b) {
  return evaluate(*derivative(kind, operand), [&](Variable v) {
    if (v == Variable::Result) return eval_binary(kind, a, b);
    return v == Variable::First ? a : b;
  });
}

template <class F>
double central_difference(F&& f, double x) {
  const double h = 1e-5 * std::max(1.0, std::fabs(x));
  // Fourth order, so that the check can be tight.
  return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

// Points where a function is smooth.
std::vector<double> smooth_points(UnaryKind kind) {
  switch (kind) {
    case UnaryKind::Log:
    case UnaryKind::Log2:
    case UnaryKind::Sqrt:
    case UnaryKind::Rsqrt: return {0.3, 1.0, 2.7, 40.0};
    case UnaryKind::Log1p: return {-0.7, 0.3, 2.7, 40.0};
    case UnaryKind::Asin:
    case UnaryKind::Acos:
    case UnaryKind::Atanh: return {-0.8, -0.1, 0.3, 0.9};
    case UnaryKind::Acosh: return {1.2, 2.7, 40.0};
    default: return {-3.3, -0.7, 0.2, 1.1, 4.6};
  }
}

bool straight_through(UnaryKind kind) { return kind == UnaryKind::Round; }

TEST(DerivativeTable, UnaryRowsMatchDifferences) {
  for (std::size_t i = 0; i < enumerator_names(UnaryKind{}).size(); ++i) {
    const auto kind = static_cast<UnaryKind>(i);
    if (derivative(kind) == nullptr || straight_through(kind)) continue;
    for (const double x : smooth_points(kind)) {
      const double expected = central_difference([&](double v) { return eval_unary(kind, v); }, x);
      EXPECT_NEAR(slope(kind, x), expected, 1e-8 * std::max(1.0, std::fabs(expected)))
          << name_of(kind) << " at " << x;
    }
  }
}

TEST(DerivativeTable, BinaryRowsMatchDifferences) {
  const std::vector<std::pair<double, double>> points = {
      {0.7, 1.9}, {2.3, 0.4}, {5.1, -1.3}, {1.4, 3.2}};
  for (std::size_t i = 0; i < enumerator_names(BinaryKind{}).size(); ++i) {
    const auto kind = static_cast<BinaryKind>(i);
    if (derivative(kind, 0) == nullptr) continue;
    for (const auto& [a, b] : points) {
      const double by_a = central_difference([&](double v) { return eval_binary(kind, v, b); }, a);
      const double by_b = central_difference([&](double v) { return eval_binary(kind, a, v); }, b);
      EXPECT_NEAR(slope(kind, 0, a, b), by_a, 1e-7 * std::max(1.0, std::fabs(by_a)))
          << name_of(kind) << " at " << a << ", " << b;
      EXPECT_NEAR(slope(kind, 1, a, b), by_b, 1e-7 * std::max(1.0, std::fabs(by_b)))
          << name_of(kind) << " at " << a << ", " << b;
    }
  }
}

TEST(DerivativeTable, CoversExactlyTheDifferentiableFunctions) {
  for (const UnaryKind k :
       {UnaryKind::IsNan, UnaryKind::IsFinite, UnaryKind::LogicalNot, UnaryKind::BitwiseNot}) {
    EXPECT_EQ(derivative(k), nullptr) << name_of(k);
  }
  for (std::size_t i = 0; i < enumerator_names(UnaryKind{}).size(); ++i) {
    const auto kind = static_cast<UnaryKind>(i);
    const bool real = row(kind).dtypes.has(DType::F32) && row(kind).gives != Gives::Truth;
    EXPECT_EQ(derivative(kind) != nullptr, real) << name_of(kind);
  }
  for (std::size_t i = 0; i < enumerator_names(BinaryKind{}).size(); ++i) {
    const auto kind = static_cast<BinaryKind>(i);
    const bool real = row(kind).dtypes.has(DType::F32) && row(kind).gives == Gives::Same;
    EXPECT_EQ(derivative(kind, 0) != nullptr, real) << name_of(kind);
    EXPECT_EQ(derivative(kind, 1) != nullptr, derivative(kind, 0) != nullptr) << name_of(kind);
  }
}

TEST(DerivativeTable, KinksHaveTheirConventions) {
  EXPECT_EQ(slope(UnaryKind::Relu, 0), 0);
  EXPECT_TRUE(std::isnan(slope(UnaryKind::Relu, NaN)));
  EXPECT_EQ(slope(UnaryKind::Abs, 0), 0);   // [EW-04]
  EXPECT_EQ(slope(UnaryKind::Sqrt, 0), 0);  // [EW-05]
  EXPECT_EQ(slope(UnaryKind::Rsqrt, 0), 0);
  EXPECT_TRUE(std::isnan(slope(UnaryKind::Sqrt, -1)));
  EXPECT_TRUE(std::isnan(slope(UnaryKind::Rsqrt, -1)));
  EXPECT_EQ(slope(UnaryKind::Round, 0.5), 1);  // [EW-03]
  EXPECT_EQ(slope(UnaryKind::Sign, 0), 0);
  EXPECT_EQ(slope(UnaryKind::Floor, 2), 0);
}

// [EW-13] Ties are shared, and a NaN takes all.
TEST(DerivativeTable, TiesAreShared) {
  for (const BinaryKind k : {BinaryKind::Max, BinaryKind::Min}) {
    EXPECT_EQ(slope(k, 0, 2, 2), 0.5);
    EXPECT_EQ(slope(k, 1, 2, 2), 0.5);
    EXPECT_EQ(slope(k, 0, NaN, 2), 1);
    EXPECT_EQ(slope(k, 1, NaN, 2), 0);
    EXPECT_EQ(slope(k, 0, 2, NaN), 0);
    EXPECT_EQ(slope(k, 1, 2, NaN), 1);
    EXPECT_EQ(slope(k, 0, NaN, NaN), 0.5);
    EXPECT_EQ(slope(k, 1, NaN, NaN), 0.5);
  }
  EXPECT_EQ(slope(BinaryKind::Max, 0, 3, 2), 1);
  EXPECT_EQ(slope(BinaryKind::Min, 0, 3, 2), 0);
}

// [EW-12]
TEST(DerivativeTable, PowIsGuarded) {
  EXPECT_EQ(slope(BinaryKind::Pow, 0, 0, 1), 1);
  EXPECT_EQ(slope(BinaryKind::Pow, 0, 0, 2), 0);
  EXPECT_EQ(slope(BinaryKind::Pow, 0, 0, 0.5), Inf);
  EXPECT_EQ(slope(BinaryKind::Pow, 0, 0, 0), 0);
  EXPECT_EQ(slope(BinaryKind::Pow, 0, 5, 0), 0);
  EXPECT_EQ(slope(BinaryKind::Pow, 0, -2, 3), 12);
  EXPECT_EQ(slope(BinaryKind::Pow, 1, -2, 3), 0);
  EXPECT_EQ(slope(BinaryKind::Pow, 1, 0, 2), 0);
  EXPECT_EQ(slope(BinaryKind::Pow, 1, 0, -2), 0);
}

TEST(DerivativeTable, RadiusIsGuardedAtTheOrigin) {
  for (const BinaryKind k : {BinaryKind::Atan2, BinaryKind::Hypot}) {
    EXPECT_EQ(slope(k, 0, 0, 0), 0);
    EXPECT_EQ(slope(k, 1, 0, 0), 0);
  }
  EXPECT_NEAR(slope(BinaryKind::Atan2, 0, 3e200, 4e200), 4.0 / 25 * 1e-200, 1e-213);
  EXPECT_NEAR(slope(BinaryKind::Hypot, 0, 3e200, 4e200), 0.6, 1e-12);
}

// The slope by the divisor is how often it was taken away, which the rounded quotient may not be.
TEST(DerivativeTable, RemCountsWhatItTakesAway) {
  EXPECT_EQ(slope(BinaryKind::Rem, 1, 1, 0.1), -9);
  EXPECT_EQ(slope(BinaryKind::Rem, 1, -1, 0.1), 9);
  EXPECT_EQ(slope(BinaryKind::Rem, 1, 3, -0.5), 6);
  EXPECT_EQ(slope(BinaryKind::Rem, 1, 0.3, 5), 0);
  EXPECT_EQ(slope(BinaryKind::Rem, 1, 0x1p53 - 1, 1), 1 - 0x1p53);
  // In a dtype that has no halves there.
  Graph g("narrow");
  const Value b = g.input("b", {DType::BF16, {}});
  const Value a = scalar_like(b, 64.5);
  g.set_outputs({build_times(*derivative(BinaryKind::Rem, 1), scalar_like(b, 1), [&](Variable v) {
    return v == Variable::First ? a : (v == Variable::Second ? b : rem(a, b));
  })});
  EXPECT_EQ(interpret(g, {{"b", Tensor::splat({DType::BF16, {}}, 0.5)}})[0].item(), -129);
}

TEST(DerivativeTable, FarAwayNothingIsNaN) {
  struct Limit {
    UnaryKind kind;
    double left;
    double right;
  };
  for (const Limit& l : std::vector<Limit>{{UnaryKind::Gelu, 0, 1},
                                           {UnaryKind::GeluApprox, 0, 1},
                                           {UnaryKind::Silu, 0, 1},
                                           {UnaryKind::Sigmoid, 0, 0},
                                           {UnaryKind::Tanh, 0, 0},
                                           {UnaryKind::Softplus, 0, 1},
                                           {UnaryKind::LogSigmoid, 1, 0},
                                           {UnaryKind::Elu, 0, 1},
                                           {UnaryKind::HardSigmoid, 0, 0},
                                           {UnaryKind::HardSwish, 0, 1},
                                           {UnaryKind::Mish, 0, 1},
                                           {UnaryKind::Softsign, 0, 0},
                                           {UnaryKind::Erf, 0, 0},
                                           {UnaryKind::Erfc, 0, 0},
                                           {UnaryKind::Atan, 0, 0},
                                           {UnaryKind::Asinh, 0, 0},
                                           {UnaryKind::Exp, 0, Inf},
                                           {UnaryKind::Relu, 0, 1}}) {
    for (const double far : {1e5, 1e200, Inf}) {
      if (l.kind == UnaryKind::Asinh && far < Inf) continue;
      EXPECT_NEAR(slope(l.kind, -far), l.left, 1e-9) << name_of(l.kind) << " at " << -far;
      if (l.right == Inf) {
        EXPECT_EQ(slope(l.kind, far), Inf);
      } else {
        EXPECT_NEAR(slope(l.kind, far), l.right, 1e-9) << name_of(l.kind) << " at " << far;
      }
    }
  }
  EXPECT_NEAR(slope(UnaryKind::Asinh, 1e200), 1e-200, 1e-213);
  EXPECT_NEAR(slope(UnaryKind::Acosh, 1e200), 1e-200, 1e-213);
}

TEST(DerivativeTable, AnUnchosenSlopeIgnoresTheCotangent) {
  const auto at = [](double x) { return [x](Variable) { return x; }; };
  EXPECT_EQ(evaluate_times(*derivative(UnaryKind::Relu), Inf, at(-1)), 0);
  EXPECT_EQ(evaluate_times(*derivative(UnaryKind::Sqrt), NaN, at(0)), 0);
  EXPECT_EQ(evaluate_times(*derivative(UnaryKind::Neg), 3, at(1)), -3);
}

// The three uses of a row agree: numbers above, graph values here.
TEST(DerivativeTable, BinaryRowsBuildWhatTheyEvaluate) {
  const std::vector<double> as = {0, 0.7, -2, 3, NaN, 0};
  const std::vector<double> bs = {2, 1.9, 3, 3, 1, 0};
  for (std::size_t i = 0; i < enumerator_names(BinaryKind{}).size(); ++i) {
    const auto kind = static_cast<BinaryKind>(i);
    for (std::size_t k = 0; k < 2 && derivative(kind, 0) != nullptr; ++k) {
      Graph g;
      const Value a = g.input("a", f64({6}));
      const Value b = g.input("b", f64({6}));
      const Value built = build(*derivative(kind, k), a, [&](Variable v) {
        if (v == Variable::Result) return binary(kind, a, b);
        return v == Variable::First ? a : b;
      });
      g.set_outputs({broadcast_to(built, {6})});
      const auto out = interpret(g, {{"a", Tensor::from_numbers<double>(f64({6}), as)},
                                     {"b", Tensor::from_numbers<double>(f64({6}), bs)}})[0]
                           .numbers<double>();
      for (std::size_t n = 0; n < out.size(); ++n) {
        const double expected = slope(kind, k, as[n], bs[n]);
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(out[n])) << name_of(kind);
        } else {
          EXPECT_EQ(out[n], expected) << name_of(kind) << " at " << as[n] << ", " << bs[n];
        }
      }
    }
  }
}

TEST(DerivativeTable, PrintsItsFormulas) {
  const std::array<std::string, 3> one = {"x", "", "y"};
  const std::array<std::string, 3> two = {"a", "b", "y"};
  EXPECT_EQ(to_string(*derivative(UnaryKind::Tanh), one), "1 - y*y");
  EXPECT_EQ(to_string(*derivative(UnaryKind::Cos), one), "-sin(x)");
  EXPECT_EQ(to_string(*derivative(UnaryKind::Atan), one), "1/hypot(x, 1)/hypot(x, 1)");
  EXPECT_EQ(to_string(*derivative(UnaryKind::Sqrt), one),
            "where(x = 0, 0, 0.5/sqrt(where(x = 0, 1, x)))");
  EXPECT_EQ(to_string(*derivative(BinaryKind::Div, 1), two), "-(y/b)");
  EXPECT_EQ(to_string(*derivative(BinaryKind::Pow, 0), two),
            "where(where(0 < abs(a), 1, b) = 0, 0, "
            "b*pow(where(where(0 < abs(a), 1, b) = 0, 1, a), b - 1))");
}

}  // namespace
}  // namespace ricci::rule::rule_derivative_test
