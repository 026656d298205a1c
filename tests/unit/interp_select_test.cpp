// Sorting as programs use it, and the distribution of samples.
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "ricci/build/select.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"

#include "support/compare.h"

namespace ricci::interp_select_test {
namespace {

using testing::random_tensor;
using testing::same;

TEST(Select, SortIsStableBothWays) {
  const Tensor x = random_tensor(1, i32({200}), 0, 4);
  for (const bool descending : {false, true}) {
    Graph g;
    const auto [values, indices] = sort(g.input("x", x.type()), {.descending = descending});
    g.set_outputs({values, indices});
    const auto out = interpret(g, {{"x", x}});
    const auto v = out[0].numbers<std::int64_t>();
    const auto i = out[1].numbers<std::int64_t>();
    for (std::size_t k = 1; k < v.size(); ++k) {
      EXPECT_TRUE(descending ? v[k - 1] >= v[k] : v[k - 1] <= v[k]);
      if (v[k - 1] == v[k]) {
        EXPECT_LT(i[k - 1], i[k]);
      }
    }
    EXPECT_EQ(std::set(i.begin(), i.end()).size(), i.size());
  }
}

TEST(Select, ValuesAreWhatTheirIndicesTake) {
  const Tensor x = random_tensor(2, f32({3, 9}));
  Graph g;
  const Value in = g.input("x", x.type());
  const auto [sorted, order] = sort(in, {.axis = 0});
  const auto [largest, where_largest] = top_k(in, {.k = 4});
  g.set_outputs({sorted, take_along_axis(in, order, {.axis = 0}), largest,
                 take_along_axis(in, where_largest)});
  const auto out = interpret(g, {{"x", x}});
  EXPECT_TRUE(same(out[0], out[1]));
  EXPECT_TRUE(same(out[2], out[3]));
}

TEST(Select, IndexBuildersWantOnlyIndices) {
  const Tensor x = random_tensor(3, f32({2, 7}));
  Graph g;
  const Value in = g.input("x", x.type());
  const Value order = arg_sort(in, {.descending = true});
  const Value first = top_k_indices(in, {.k = 1});
  g.set_outputs(
      {narrow(order, {.axis = 1, .start = 0, .len = 1}), first, arg_max(in, {.keep_dim = true})});
  EXPECT_FALSE(g.node(order.id().node).wanted[0]);
  EXPECT_FALSE(g.node(first.id().node).wanted[0]);
  const auto out = interpret(g, {{"x", x}});
  EXPECT_TRUE(same(out[0], out[1]));
  EXPECT_TRUE(same(out[0], out[2]));
}

TEST(Select, TheParserKnowsTheIndexBuilders) {
  const Graph g = parse_graph("graph @g {\n"
                              "  %x = input \"x\" : f32[2, 7]\n"
                              "  %a = arg_sort %x {axis = 0, descending = true}\n"
                              "  %b = top_k_indices %x {k = 2, index_dtype = i64}\n"
                              "  return %a, %b\n"
                              "}\n");
  EXPECT_EQ(g.type(g.outputs()[0]), i32({2, 7}));
  EXPECT_EQ(g.type(g.outputs()[1]), i64({2, 2}));
  EXPECT_TRUE(parse_graph(print(g)) == g);
}

// Samples `rows` times from one row of logits.
std::vector<std::int64_t> samples(std::initializer_list<double> logits, std::int64_t rows,
                                  op::Sample attrs, std::uint64_t seed = 5) {
  const auto width = static_cast<std::int64_t>(logits.size());
  const Tensor row = Tensor::from_numbers<double>(f32({width}), std::vector<double>(logits))
                         .broadcast_to({rows, width});
  Graph g;
  g.set_outputs({sample(g.input("x", row.type()), attrs)});
  return interpret(g, {{"x", row}}, {.seed = seed})[0].numbers<std::int64_t>();
}

std::map<std::int64_t, double> frequencies(const std::vector<std::int64_t>& ids) {
  std::map<std::int64_t, double> out;
  for (const std::int64_t id : ids) out[id] += 1.0 / static_cast<double>(ids.size());
  return out;
}

constexpr std::int64_t Rows = 20000;
// Five standard deviations of a frequency near one half.
constexpr double Near = 5 * 0.5 / 141.0;

TEST(Sample, FrequenciesAreTheSoftmax) {
  auto f = frequencies(samples({std::log(1), std::log(2), std::log(3), std::log(4)}, Rows, {}));
  for (std::int64_t id = 0; id < 4; ++id) {
    EXPECT_NEAR(f[id], static_cast<double>(id + 1) / 10, Near) << id;
  }
}

TEST(Sample, TemperatureSharpens) {
  // Halving the temperature squares the probabilities: 1 : 4 : 9.
  auto f =
      frequencies(samples({std::log(1), std::log(2), std::log(3)}, Rows, {.temperature = 0.5}));
  EXPECT_NEAR(f[0], 1.0 / 14, Near);
  EXPECT_NEAR(f[1], 4.0 / 14, Near);
  EXPECT_NEAR(f[2], 9.0 / 14, Near);
}

// [RD-12] exactly top_k ids stay, ties cut by index.
TEST(Sample, TopKKeepsExactlyK) {
  auto f = frequencies(samples({1, 2, 2, 2, 0}, Rows, {.top_k = 2}));
  EXPECT_EQ(f.size(), 2U);
  EXPECT_NEAR(f[1], 0.5, Near);
  EXPECT_NEAR(f[2], 0.5, Near);
}

TEST(Sample, TopPKeepsTheShortestPrefix) {
  // 0.5, 0.3 reach 0.7; 0.15 and 0.05 are left out and the rest is renormalised.
  auto f = frequencies(samples({std::log(0.05), std::log(0.5), std::log(0.15), std::log(0.3)}, Rows,
                               {.top_p = 0.7}));
  EXPECT_EQ(f.size(), 2U);
  EXPECT_NEAR(f[1], 0.625, Near);
  EXPECT_NEAR(f[3], 0.375, Near);
}

TEST(Sample, TemperatureZeroIsArgMax) {
  const auto f = frequencies(samples({0, 3, 1, 3}, 100, {.temperature = 0}));
  EXPECT_EQ(f.size(), 1U);
  EXPECT_TRUE(f.contains(1));
}

TEST(Sample, AnImpossibleIdIsNeverDrawn) {
  const double never = -std::numeric_limits<double>::infinity();
  const auto f = frequencies(samples({never, 0, never, 0, never}, Rows, {}));
  EXPECT_EQ(f.size(), 2U);
  EXPECT_TRUE(f.contains(1) && f.contains(3));
}

TEST(Sample, KeysSeedsAndTheRunsSeedChooseTheStream) {
  const auto draw = [](op::Sample attrs, std::uint64_t seed) {
    return samples({0, 0, 0, 0, 0, 0}, 50, attrs, seed);
  };
  EXPECT_EQ(draw({.key = 3}, 1), draw({.key = 3}, 1));
  EXPECT_NE(draw({.key = 3}, 1), draw({.key = 4}, 1));
  EXPECT_NE(draw({.key = 3}, 1), draw({.key = 3}, 2));
  EXPECT_EQ(draw({.seed = 9, .key = 3}, 1), draw({.seed = 9, .key = 4}, 1));
  EXPECT_EQ(draw({.seed = 9, .key = 3}, 1), draw({.key = 9}, 1));
}

TEST(Sample, OneRowOfLogitsGivesAScalar) {
  Graph g;
  EXPECT_EQ(sample(g.input("x", f32({4}))).type(), i32());
}

}  // namespace
}  // namespace ricci::interp_select_test
