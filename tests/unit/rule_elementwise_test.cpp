// Functions of numbers: which there are, and quotients of complex ones.
#include <cmath>
#include <complex>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/op/elementwise.h"
#include "ricci/support/error.h"

#include "rule/number_functions.h"

namespace ricci::testing::rule_elementwise_test {
namespace {

using Complex = std::complex<double>;

template <class F>
bool is_defined(const F& f) {
  try {
    (void)f();
  } catch (const InternalError&) {
    return false;
  }
  return true;
}

// There is code for the dtypes of a row, and for no others.
template <class Kind, class F>
void expect_functions_of_rows(const F& function) {
  constexpr auto names = enumerator_names(Kind{});
  for (std::size_t k = 0; k < names.size(); ++k) {
    const auto kind = static_cast<Kind>(k);
    const DTypeSet dtypes = row(kind).dtypes;
    if (row(kind).gives == Gives::Complex) continue;  // of two reals, which the kernel pairs itself
    EXPECT_EQ(is_defined([&] { return function(kind, 1.5, DType::F64); }), dtypes.has(DType::F64))
        << names[k];
    EXPECT_EQ(is_defined([&] { return function(kind, std::int64_t{1}, DType::I64); }),
              dtypes.has(DType::I64) || dtypes.has(DType::Bool))
        << names[k];
    EXPECT_EQ(is_defined([&] { return function(kind, Complex(1, 2), DType::C128); }),
              dtypes.has(DType::C128))
        << names[k];
    EXPECT_GE(row(kind).cost.real, 1) << names[k];
    EXPECT_GE(row(kind).cost.complex, row(kind).cost.real) << names[k];
  }
}

TEST(RuleElementwise, FunctionsAreThoseOfTheirRows) {
  expect_functions_of_rows<UnaryKind>(
      [](UnaryKind kind, auto x, DType dtype) { return rule::eval_unary(kind, x, dtype); });
  expect_functions_of_rows<BinaryKind>(
      [](BinaryKind kind, auto x, DType dtype) { return rule::eval_binary(kind, x, x, dtype); });
}

Complex quotient(Complex a, Complex b) { return rule::eval_binary(BinaryKind::Div, a, b); }

void expect_close(Complex actual, Complex expected, double relative = 4e-16) {
  const auto near = [&](double a, double b) {
    return a == b || std::fabs(a - b) <= relative * std::fabs(b) + 5e-324;
  };
  EXPECT_TRUE(near(actual.real(), expected.real()) && near(actual.imag(), expected.imag()))
      << fmt::format("{} {} i, not {} {} i", actual.real(), actual.imag(), expected.real(),
                     expected.imag());
}

// Values that follow from the formula in numbers of any size.
TEST(RuleElementwise, QuotientsAtTheEndsOfTheRange) {
  constexpr double Most = std::numeric_limits<double>::max();
  constexpr double Least = std::numeric_limits<double>::denorm_min();
  expect_close(quotient({1e308, 1e308}, {1, 1}), {1e308, 0});
  expect_close(quotient({1e308, 1e308}, {1, -1}), {0, 1e308});
  expect_close(quotient({Most, Most}, {Most, Most}), {1, 0});
  expect_close(quotient({Most, -Most}, {Most, Most}), {0, -1});
  expect_close(quotient({Least, Least}, {Least, Least}), {1, 0});
  expect_close(quotient({1, 1}, {Least, 0}), {INFINITY, INFINITY});
  expect_close(quotient({Most, Least}, {2, 0}), {Most / 2, 0});
  expect_close(quotient({1e308, 1e-300}, {1, 0}), {1e308, 1e-300});
  expect_close(quotient({1e308, 1e-92}, {1e100, 0.5e-300}), {1e208, 0.5e-192}, 1e-15);
  expect_close(quotient({1e-300, 1e-300}, {1e-300, 1e300}), {0, 0});
  expect_close(quotient({3e-310, 0}, {1e-310, 0}), {3e-310 / 1e-310, 0});
  // The parts of the numerator nearly cancel: 1 + 2^-52 and 1, against themselves turned round.
  const double one = 1 + 0x1p-52;
  expect_close(quotient({one, 1}, {1, -one}), {0, 1});
  expect_close(quotient({one, 1}, {1, -1}), {0x1p-53, (one + 1) / 2});
}

TEST(RuleElementwise, QuotientsOfSpecialNumbersAreThoseOfAnnexG) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(quotient({1, 1}, {Inf, 2}), Complex(0, 0));
  EXPECT_TRUE(std::isinf(quotient({Inf, 1}, {2, 3}).real()));
  EXPECT_TRUE(std::isinf(quotient({1, 0}, {0, 0}).real()));
  EXPECT_TRUE(std::isnan(quotient({0, 0}, {0, 0}).real()));
  EXPECT_TRUE(std::signbit(quotient({-0.0, -0.0}, {1, 0}).real()));
}

// Against numbers of more digits, where the platform has them.
TEST(RuleElementwise, QuotientsAreRight) {
  if (std::numeric_limits<long double>::max_exponent < 16384)
    GTEST_SKIP() << "long double, which the quotients are compared in, is no wider than double";
  std::uint64_t seed = 1;
  const auto draw = [&] {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const auto digits = static_cast<double>(static_cast<std::int64_t>(seed)) * 0x1p-63;
    return std::scalbn(digits, static_cast<int>((seed >> 8U) % 600U) - 300);
  };
  for (int i = 0; i < 20000; ++i) {
    const double a = draw();
    const double b = draw();
    const double c = draw();
    const double d = draw();
    const auto w = [](double x) { return static_cast<long double>(x); };
    const long double size = w(c) * w(c) + w(d) * w(d);
    const long double re = (w(a) * w(c) + w(b) * w(d)) / size;
    const long double im = (w(b) * w(c) - w(a) * w(d)) / size;
    expect_close(quotient({a, b}, {c, d}), {static_cast<double>(re), static_cast<double>(im)});
  }
}

}  // namespace
}  // namespace ricci::testing::rule_elementwise_test
