// The judge of compiled programs: what it lets pass, and what not.
#include "backend/agreement.h"

#include <array>
#include <cmath>
#include <complex>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/build/reduce.h"

namespace ricci::testing::agreement_test {
namespace {

constexpr double Inf = std::numeric_limits<double>::infinity();
constexpr double NaN = std::numeric_limits<double>::quiet_NaN();

Tensor vector_of(std::vector<double> v) {
  return Tensor::of<double>({static_cast<std::int64_t>(v.size())}, std::span<const double>(v));
}

// Two outputs of two inputs that have nothing to do with each other.
struct Apart {
  Graph graph{"apart"};
  Feeds feeds;
  Outcome expected;

  Apart(std::vector<double> a, std::vector<double> b) {
    const Value x = graph.input("a", f64({static_cast<std::int64_t>(a.size())}));
    const Value y = graph.input("b", f64({static_cast<std::int64_t>(b.size())}));
    graph.set_outputs({sin(x) * 2.0, exp(y) * 3.0});
    feeds = {{"a", vector_of(std::move(a))}, {"b", vector_of(std::move(b))}};
    expected = reference_outcome(graph, feeds);
  }
  // What is said of a run in which element 0 of an output is `number`.
  [[nodiscard]] std::string with(std::size_t output, double number) const {
    std::vector<Tensor> actual = std::get<std::vector<Tensor>>(expected);
    std::vector<double> numbers = actual[output].numbers<double>();
    numbers[0] = number;
    actual[output] = vector_of(numbers);
    return disagreement(graph, feeds, Outcome(actual), expected);
  }
};

TEST(BackendAgreement, AnInfinityExcusesNothingBesideIt) {
  const Apart p({1, Inf}, {1, 2});
  EXPECT_NE(p.with(0, NaN), "");
  EXPECT_NE(p.with(1, NaN), "");
  EXPECT_NE(p.with(0, Inf), "");
}

// What the judge thinks of NaN in the first element of one of these outputs, where a zero is an
// exponent: an infinity to the power of 0 is 1, and may be anything for an exponent near it.
struct Powers {
  Graph graph{"powers"};
  Feeds feeds;
  Outcome expected;

  explicit Powers(double base) {
    const Value x = graph.input("x", f64({2}));
    const Value exponent = graph.input("y", f64({2}));
    const Value y = pow(x, exponent);
    const auto body = [&](Graph&, std::span<const Value> in) {
      return std::vector{min(pow(in[0], exponent), 2.5)};
    };
    const Value looped = scan(x, body, 1);
    graph.set_outputs({y, max(y, 0.5), cast_to(y * 100.0, DType::I32), exp(x) * 2.0, looped});
    feeds = {{"x", vector_of({base, 3})}, {"y", vector_of({0, 2})}};
    expected = reference_outcome(graph, feeds);
  }
  [[nodiscard]] std::string with_nan_in(std::size_t output, AgreementCounts* counts = nullptr,
                                        std::size_t element = 0) const {
    std::vector<Tensor> actual = std::get<std::vector<Tensor>>(expected);
    std::vector<double> numbers = actual[output].numbers<double>();
    numbers[element] = is_float(actual[output].dtype()) ? NaN : 0;
    actual[output] = Tensor::from_numbers<double>(actual[output].type(), numbers);
    return disagreement(graph, feeds, Outcome(actual), expected, counts);
  }
};

TEST(BackendAgreement, ExcusesANanWhereAZeroMayHaveMetAnInfinity) {
  const Powers odd(Inf);
  const Powers finite(1.5);
  for (const std::size_t output : {0U, 1U, 2U, 4U}) {
    AgreementCounts counts;
    EXPECT_EQ(odd.with_nan_in(output, &counts), "") << output;
    EXPECT_EQ(counts.excused, 1U) << to_string(counts);
    EXPECT_EQ(counts.elements, 10U);
    EXPECT_NE(odd.with_nan_in(output, nullptr, 1), "") << output;
    EXPECT_NE(finite.with_nan_in(output), "") << output;
  }
  EXPECT_NE(odd.with_nan_in(3), "");
}

// A transform of an infinity is NaN where it meets a zero among the factors, which depends on the
// way it is computed; the row beside it is what it is.
TEST(BackendAgreement, TransformsOfInfinitiesMayBeNaNOrNot) {
  Graph g("transform");
  const Value x = g.input("x", f64({2, 4}));
  g.set_outputs({fft(x, {.axis = 1})});
  const Feeds feeds{
      {"x", Tensor::from_numbers<double>(x.type(), std::vector<double>{1, 2, 3, Inf, 5, 6, 7, 8})}};
  const Outcome expected = reference_outcome(g, feeds);
  const auto with = [&](std::size_t element, double number) {
    std::vector<Tensor> actual = std::get<std::vector<Tensor>>(expected);
    std::vector<double> numbers = actual[0].numbers<double>();
    numbers[element] = number;
    actual[0] = Tensor::from_numbers<double>(actual[0].type(), numbers);
    return disagreement(g, feeds, Outcome(actual), expected);
  };
  EXPECT_EQ(with(0, NaN), "");
  EXPECT_EQ(with(0, 3), "");  // the sum of what is real
  EXPECT_NE(with(0, 5), "");
  EXPECT_NE(with(4, NaN), "");
}

// A sum of products with a factor that is an infinity is that infinity, or NaN: whether it is taken
// out of the sum is the device's to say.
TEST(BackendAgreement, AFactorMayBeTakenOutOfASum) {
  Graph g("sum");
  const Value x = g.input("x", f64({1, 2}));
  g.set_outputs({matmul(x, g.constant(Tensor::splat(f64({2, 1}), Inf)))});
  const auto judged = [&](double a, double b, double actual) {
    const Feeds feeds{{"x", Tensor::from_numbers<double>(x.type(), std::vector<double>{a, b})}};
    const Outcome other(std::vector{Tensor::splat(f64({1, 1}), actual)});
    return disagreement(g, feeds, other, reference_outcome(g, feeds));
  };
  EXPECT_EQ(judged(3, -1, NaN), "");
  EXPECT_EQ(judged(3, -1, Inf), "");
  EXPECT_NE(judged(3, -1, -Inf), "");
  EXPECT_NE(judged(3, -1, 2), "");
  EXPECT_NE(judged(3, 1, -Inf), "");
  EXPECT_NE(judged(3, 1, NaN), "");
}

// Only what is computed from such a product may look otherwise where it overflows.
TEST(BackendAgreement, ComplexProductsExcuseWhatComesOfThem) {
  Graph g("products");
  const Value x = g.input("x", {DType::C128, {2}});
  g.set_outputs({reduce_prod(x), exp(x)});
  const Type type{DType::C128, {2}};
  const Feeds feeds{
      {"x", Tensor::from_numbers<std::complex<double>>(
                type, std::vector<std::complex<double>>{{1e200, 1e200}, {1e200, 1}})}};
  const Outcome expected = reference_outcome(g, feeds);
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<Tensor> actual = std::get<std::vector<Tensor>>(expected);
    auto numbers = actual[i].numbers<std::complex<double>>();
    ASSERT_FALSE(std::isfinite(std::abs(numbers[0])));
    numbers[0] = {-Inf, 5};
    actual[i] = Tensor::from_numbers<std::complex<double>>(actual[i].type(), numbers);
    EXPECT_EQ(disagreement(g, feeds, Outcome(actual), expected).empty(), i == 0);
  }
}

// What the judge says of NaN for the product of so many twos, and a zero behind them.
std::string nan_for_product(DType dtype, std::int64_t twos) {
  Graph graph("product");
  const Value x = graph.input("x", {dtype, {twos + 1}});
  graph.set_outputs({reduce_prod(x)});
  std::vector<double> numbers(static_cast<std::size_t>(twos), 2.0);
  numbers.push_back(0);
  const Feeds feeds = {{"x", Tensor::from_numbers<double>({dtype, {twos + 1}}, numbers)}};
  const Outcome expected = reference_outcome(graph, feeds);
  const std::vector<double> nan = {NaN};
  const Outcome actual(std::vector{Tensor::from_numbers<double>({dtype, {}}, nan)});
  return disagreement(graph, feeds, actual, expected);
}

TEST(BackendAgreement, PartsOfALongProductMayLeaveTheRangeOfF64) {
  for (const DType dtype : {DType::F64, DType::F32, DType::BF16}) {
    EXPECT_EQ(nan_for_product(dtype, 1100), "") << name(dtype);
    EXPECT_NE(nan_for_product(dtype, 900), "") << name(dtype);
  }
}

TEST(BackendAgreement, AcceptsNothingElseForAnInfinity) {
  const Apart p({1, 2}, {1000, 1});
  ASSERT_EQ(p.with(1, Inf), "");
  EXPECT_NE(p.with(1, 5.0), "");
  EXPECT_NE(p.with(1, -Inf), "");
  EXPECT_NE(p.with(0, Inf), "");
}

// Every nudged run divides by an integer that has become zero.
TEST(BackendAgreement, ARunThatFaultsExcusesNothing) {
  Graph g("fragile");
  const Value x = g.input("x", f64({1}));
  const Value scaled = (x * 3.0) / 3.0;
  const Value divisor = cast_to(eq(scaled, x), DType::I32);
  const Value one = g.constant(Tensor::splat({DType::I32, {1}}, 1.0));
  g.set_outputs({cast_to(div(one, divisor), DType::F64), sin(x)});
  const Feeds feeds{{"x", vector_of({1})}};
  const Outcome expected = reference_outcome(g, feeds);
  ASSERT_TRUE(std::holds_alternative<std::vector<Tensor>>(expected));
  std::vector<Tensor> actual = std::get<std::vector<Tensor>>(expected);
  actual[1] = vector_of({0.5});
  EXPECT_NE(disagreement(g, feeds, Outcome(actual), expected), "");
}

// Indices may be floats: if rounding moved them every run would fault, and excuse nothing.
TEST(BackendAgreement, RoundingMovesNoIndices) {
  Graph g("groups");
  const Value x = g.input("x", f64({3, 1}));
  const Value scaled = exp(x) * 1e16 - std::exp(1.0) * 1e16;
  const Value w = g.constant(Tensor::splat(f64({2, 1, 1}), 1));
  const Value groups = g.constant(vector_of({0, 1, 1}));
  g.set_outputs({grouped_matmul(scaled, w, groups)});
  const Feeds feeds{{"x", Tensor::splat(f64({3, 1}), 1)}};
  const Outcome expected = reference_outcome(g, feeds);
  std::vector<double> numbers = std::get<std::vector<Tensor>>(expected)[0].numbers<double>();
  numbers[0] += 4;
  const Outcome actual(std::vector{Tensor::from_numbers<double>(f64({3, 1}), numbers)});
  EXPECT_EQ(disagreement(g, feeds, actual, expected), "");
}

// A sum of a few numbers in a dtype, and what is made of it that tells nothing from something.
struct AskedAbout {
  Graph graph{"asked"};
  Feeds feeds;
  Outcome expected;

  AskedAbout(DType dtype, const std::vector<double>& terms) {
    const Type type{dtype, {static_cast<std::int64_t>(terms.size())}};
    const Value x = graph.input("x", type);
    const Value total = sum(x);
    const Value nothing = graph.constant(Tensor::splat({dtype, {}}, 0.0));
    graph.set_outputs({cast_to(total, DType::Bool), ne(total, nothing),
                       cast_to(sign(total), DType::I32), cast_to(abs(total), DType::Bool),
                       cast_to(total, DType::I32)});
    feeds = {{"x", Tensor::from_numbers<double>(type, terms)}};
    expected = reference_outcome(graph, feeds);
  }
  [[nodiscard]] double expects(std::size_t output) const {
    return std::get<std::vector<Tensor>>(expected)[output].numbers<double>()[0];
  }
  [[nodiscard]] std::string with(std::size_t output, double number) const {
    std::vector<Tensor> actual = std::get<std::vector<Tensor>>(expected);
    actual[output] = Tensor::splat(actual[output].type(), number);
    return disagreement(graph, feeds, Outcome(actual), expected);
  }
};

constexpr std::size_t Asks = 4;  // the last output is a number
constexpr std::array SmallFloats = {DType::F16, DType::BF16, DType::F32, DType::F64};

double last_place(DType dtype) {
  if (dtype == DType::F16) return 0x1p-10;
  if (dtype == DType::BF16) return 0x1p-7;
  return dtype == DType::F32 ? 0x1p-23 : 0x1p-52;
}

// Three tenths less three tenths is nothing in one order of rounding, and something in another.
TEST(BackendAgreement, WhatCancelsMayBeNothingOrSomething) {
  for (const DType dtype : SmallFloats) {
    for (const double scale : {1.0, 1e-3, 1e3}) {
      const double tenth = 0.1 * scale;
      const AskedAbout left(dtype, {tenth, tenth, tenth, -0.3 * scale});
      const AskedAbout none(dtype, {tenth, -tenth, tenth, -tenth});
      for (std::size_t i = 0; i < Asks; ++i) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(dtype), scale, i));
        EXPECT_EQ(none.expects(i), 0);
        EXPECT_EQ(none.with(i, 1), "");
        EXPECT_EQ(left.with(i, 0), "");
      }
      if (scale > 1) continue;  // hundreds are rounded to whole numbers
      EXPECT_NE(left.with(Asks, 7), "") << name(dtype);
      EXPECT_NE(none.with(Asks, 7), "") << name(dtype);
    }
  }
}

// What does not cancel is no nothing, however small, and nothing that cannot be anything is none.
TEST(BackendAgreement, WhatIsSmallIsSomething) {
  for (const DType dtype : SmallFloats) {
    const double unit = last_place(dtype);
    const AskedAbout small(dtype, {unit, unit, unit, unit / 2});
    const AskedAbout partly(dtype, {1, -1, 20 * unit, 20 * unit});
    const AskedAbout zero(dtype, {0, 0, 0, 0});
    for (std::size_t i = 0; i < Asks; ++i) {
      SCOPED_TRACE(fmt::format("{} {}", name(dtype), i));
      EXPECT_EQ(small.expects(i), 1);
      EXPECT_NE(small.with(i, 0), "");
      EXPECT_EQ(partly.expects(i), 1);
      EXPECT_NE(partly.with(i, 0), "");
      EXPECT_EQ(zero.expects(i), 0);
      EXPECT_NE(zero.with(i, 1), "");
    }
  }
}

TEST(BackendAgreement, AllowsWhatRoundingDoes) {
  Graph g("cancelling");
  const Value x = g.input("x", f64({1}));
  g.set_outputs({exp(x) * 1e16 - std::exp(1.0) * 1e16});
  const Feeds feeds{{"x", vector_of({1})}};
  const Outcome expected = reference_outcome(g, feeds);
  const double exact = std::get<std::vector<Tensor>>(expected)[0].numbers<double>()[0];
  const auto off_by = [&](double difference) {
    return disagreement(g, feeds, Outcome(std::vector{vector_of({exact + difference})}), expected);
  };
  EXPECT_EQ(off_by(4), "");
  EXPECT_NE(off_by(1e6), "");
}

}  // namespace
}  // namespace ricci::testing::agreement_test
