// Random ops as programs use them: fresh keys, seeds, draws inside a loop.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"

namespace ricci::interp_random_test {
namespace {

std::vector<double> draw(const Graph& g, std::uint64_t seed) {
  return interpret(g, {}, {.seed = seed})[0].numbers<double>();
}

TEST(Random, FreshKeysGiveDistinctStreams) {
  Graph g;
  const Value a = rng_uniform(g, {.shape = Dims{4}});
  const Value b = rng_uniform(g, {.shape = Dims{4}});
  g.set_outputs({a, b});
  const auto out = interpret(g, {});
  EXPECT_NE(out[0].numbers<double>(), out[1].numbers<double>());
  const Graph again = parse_graph(print(g));
  EXPECT_TRUE(interpret(again, {})[1].identical(out[1]));
}

TEST(Random, SeedChangesTheDraw) {
  Graph g;
  g.set_outputs({rng_normal(g, {.shape = Dims{8}})});
  EXPECT_EQ(draw(g, 5), draw(g, 5));
  EXPECT_NE(draw(g, 5), draw(g, 6));
}

TEST(Random, HalfIsTheRoundedF32Draw) {
  Graph g;
  const Value wide = rng_normal(g, {.shape = Dims{67}, .key = 11});
  const Value half = rng_normal(g, {.shape = Dims{67}, .dtype = DType::F16, .key = 11});
  g.set_outputs({cast(wide, {.to = DType::F16}), half});
  const auto out = interpret(g, {});
  EXPECT_TRUE(out[0].identical(out[1]));
}

TEST(Random, NormalsHaveTheirMoments) {
  Graph g;
  g.set_outputs({rng_normal(g, {.mean = 3.0, .scale = 2.0, .shape = Dims{20000}})});
  double total = 0;
  double squares = 0;
  const auto xs = draw(g, 1);
  for (const double x : xs) {
    total += x;
    squares += x * x;
  }
  const double mean = total / 20000;
  EXPECT_NEAR(mean, 3.0, 0.06);
  EXPECT_NEAR(squares / 20000 - mean * mean, 4.0, 0.2);
}

TEST(Random, KeyOperandVariesADrawInsideAScan) {
  Graph g;
  const Value start = g.constant(Tensor::splat(i64(), 0));
  const ScanOptions options{.length = Dim(3)};
  const auto results = scan(std::array{start}, options, [](Graph& body, std::span<const Value> in) {
    const std::array key{in[0]};
    const Value noise = body.add_node(Op(op::RngBits{.shape = {2}, .key = 7}), key)[0];
    return std::vector<Value>{in[0] + 1.0, noise};
  });
  g.set_outputs({results[1]});
  const auto words = interpret(g, {})[0].numbers<std::int64_t>();
  ASSERT_EQ(words.size(), 6U);
  EXPECT_EQ(words[0], 4262320617);  // step 0 is key 7 itself
  EXPECT_NE(words[0], words[2]);
  EXPECT_NE(words[2], words[4]);
}

TEST(Random, DimSizeIsBoundByTheFeeds) {
  Graph g;
  const Value x = g.input("x", f32({Dim::symbol("n"), 2}));
  const Value n = dim_size(g, {.dim = Dim::symbol("n") * 2, .dtype = DType::F32});
  g.set_outputs({sum(x) / n});
  const auto out = interpret(g, {{"x", Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})}});
  EXPECT_FLOAT_EQ(static_cast<float>(out[0].item()), 3.5F);
}

}  // namespace
}  // namespace ricci::interp_random_test
