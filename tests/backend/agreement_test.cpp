// The judge of compiled programs: what it lets pass, and what not.
#include "backend/agreement.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"

namespace ricci::testing {
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

TEST(BackendAgreement, ExcusesANanOnlyWhereAnInfinityCanHaveMadeIt) {
  const Apart p({1, Inf}, {1, 2});
  EXPECT_EQ(p.with(0, NaN), "");
  EXPECT_NE(p.with(1, NaN), "");
  EXPECT_NE(p.with(0, Inf), "");
}

TEST(BackendAgreement, SeesInfinitiesInsideBodies) {
  Graph g("loop");
  const Value x = g.input("x", f64({2}));
  const Value looped = scan(
      x,
      [](Graph&, std::span<const Value> in) { return std::vector{min(exp(in[0] * 1000.0), 2.0)}; },
      2);
  g.set_outputs({sin(looped), sin(x)});
  const Feeds feeds{{"x", vector_of({1, 2})}};
  const Outcome expected = reference_outcome(g, feeds);
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<Tensor> actual = std::get<std::vector<Tensor>>(expected);
    actual[i] = vector_of({NaN, NaN});
    EXPECT_EQ(disagreement(g, feeds, Outcome(actual), expected).empty(), i == 0);
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
}  // namespace ricci::testing
