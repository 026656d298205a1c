// [amp-training] Products in FP8: values and gradients against those of another implementation,
// what is left alone, and numbers that are hard to scale.
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/compiler/rewrite/precision.h"
#include "ricci/interp/interpreter.h"
#include "ricci/io/npy.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"
#include "test_paths.h"

namespace ricci::testing::rewrite_fp8_test {
namespace {

PrecisionPolicy in_f32() {
  PrecisionPolicy policy;
  policy.fp8 = Fp8Recipe{};
  return policy;
}

Graph mixed(const Graph& graph, const PrecisionPolicy& policy) {
  PassResult result = auto_mixed_precision(graph, policy);
  verify(result.graph);
  return std::move(result.graph);
}

std::size_t count_of(const Graph& graph, std::string_view mnemonic) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op.mnemonic() == mnemonic ? 1 : 0;
  return count;
}

Graph product(const Dims& x, const Dims& w) {
  Graph g("product");
  g.set_outputs({matmul(g.input("x", f32(x)), g.param("w", f32(w)))});
  return g;
}

// make_fp8_values.py
TEST(RewriteFp8, ValuesAndGradientsAreThoseOfTheFormats) {
  std::map<std::string, Tensor> arrays;
  for (auto& [name, t] : io::read_npz(RICCI_SOURCE_DIR "/tests/reference/quant/fp8_products.npz")) {
    arrays.emplace(name, t);
  }
  const auto expect = [&](const Graph& g, double tolerance) {
    const Graph backward = grad_with_loss(g, {"x", "w"}).graph;
    const Feeds feeds = {
        {"x", arrays.at("x")}, {"w", arrays.at("w")}, {"d_output", arrays.at("dy")}};
    for (const auto& out : {interpret(backward, feeds), compile(backward).run(feeds)}) {
      std::size_t r = 0;
      for (const char* name : {"y", "dx", "dw"}) {
        const auto expected = arrays.at(name).numbers<double>();
        const auto got = out[r++].numbers<double>();
        double most = 0;
        for (const double v : expected) most = std::max(most, std::abs(v));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_NEAR(got[i], expected[i], tolerance * most) << name << " " << i;
        }
      }
    }
  };
  const Graph g = product({7, 13}, {13, 5});
  expect(mixed(g, in_f32()), 1e-6);
  expect(mixed(g, PrecisionPolicy::auto_mixed_fp8()), 1.0 / 128);
}

TEST(RewriteFp8, TensorsAreRoundedOnceAndTwiceIsOnce) {
  Graph g("shared");
  const Value x = g.input("x", f32({3, 4}));
  const Value w = g.param("w", f32({4, 4}));
  g.set_outputs({matmul(x, w), matmul(exp(x), w)});
  for (const PrecisionPolicy& policy : {in_f32(), PrecisionPolicy::auto_mixed_fp8()}) {
    const Graph once = mixed(g, policy);
    EXPECT_EQ(count_of(once, "quantize"), 3U) << print(once);
    EXPECT_EQ(mixed(once, policy), once);
  }
}

TEST(RewriteFp8, OnlyProductsChange) {
  Graph g("others");
  const Value x = g.input("x", f32({4, 4}));
  g.set_outputs({tanh(softmax(x)), dense_solve(x, g.input("b", f32({4}))),
                 matmul(g.input("d", f64({2, 2})), g.input("e", f64({2, 2})))});
  EXPECT_EQ(mixed(g, PrecisionPolicy::auto_mixed_fp8()), g);
}

TEST(RewriteFp8, RulesLeaveProductsAlone) {
  Graph g("rules");
  const Value x = g.input("x", f32({4, 4}));
  g.set_outputs({matmul(x, g.param("w", f32({4, 4}))).named("head"), matmul(x, x).named("body")});
  PrecisionPolicy policy = PrecisionPolicy::auto_mixed_fp8();
  policy.rules.push_back({"head", DType::F32});
  const Graph m = mixed(g, policy);
  EXPECT_EQ(count_of(m, "quantize"), 1U) << print(m);
  EXPECT_EQ(m.node(m.outputs()[0].node).op.mnemonic(), "matmul");
}

TEST(RewriteFp8, BodiesToo) {
  Graph g("loop");
  const Value h = g.input("h", f32({2, 4}));
  const Value w = g.param("w", f32({4, 4}));
  const Value last = scan(
      std::vector{h}, {.bcasts = {w}, .length = 3},
      [](Graph&, std::span<const Value> in) { return std::vector{tanh(matmul(in[0], in[1]))}; })[0];
  g.set_outputs({sum(last, {0, 1})});
  const Graph m = mixed(g, PrecisionPolicy::auto_mixed_fp8());
  for (const Node& node : m.nodes()) {
    if (node.op.mnemonic() != "scan") continue;
    EXPECT_EQ(count_of(*node.bodies[0].graph, "quantize"), 2U);
  }
  const Feeds feeds = {{"h", random_tensor(1, f32({2, 4}), -1, 1)},
                       {"w", random_tensor(2, f32({4, 4}), -1, 1)}};
  const Graph backward = value_and_grad(m, {"w"}).graph;
  const auto expected = interpret(backward, feeds);
  const auto got = compile(backward).run(feeds);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(close(got[i], expected[i], Tolerance{.relative = 0.02, .absolute = 0.02}));
  }
}

TEST(RewriteFp8, NumbersThatAreHardToScale) {
  const float inf = std::numeric_limits<float>::infinity();
  const Graph m = mixed(product({2, 2}, {2, 1}), in_f32());
  const auto run = [&](std::vector<float> x, std::vector<float> w) {
    return interpret(m,
                     {{"x", Tensor::of<float>({2, 2}, x)}, {"w", Tensor::of<float>({2, 1}, w)}})[0]
        .numbers<double>();
  };
  EXPECT_EQ(run({0, 0, 0, 0}, {1, 1}), (std::vector<double>{0, 0}));
  EXPECT_EQ(run({448, 0, 0, 1}, {448, 448}), (std::vector<double>{448 * 448, 448}));
  EXPECT_TRUE(std::isnan(run({inf, 1, 1, 1}, {1, 1})[0]));
  EXPECT_NEAR(run({1e38F, 0, 0, 1e38F}, {1e-38F, 2e-38F})[1], 2, 0.1);
  const auto tiny = run({1e-44F, 0, 0, 1e-44F}, {1, 1});
  EXPECT_GE(tiny[0], 0);
  EXPECT_LE(tiny[0], 2e-44);
  // Nothing to multiply, nothing to scale.
  const Graph none = mixed(product({0, 3}, {3, 2}), PrecisionPolicy::auto_mixed_fp8());
  EXPECT_EQ(
      interpret(none, {{"x", Tensor::zeros(f32({0, 3}))}, {"w", Tensor::zeros(f32({3, 2}))}})[0]
          .dims(),
      (StaticDims{0, 2}));
  const Graph sums = mixed(product({2, 0}, {0, 2}), in_f32());
  EXPECT_EQ(
      interpret(sums, {{"x", Tensor::zeros(f32({2, 0}))}, {"w", Tensor::zeros(f32({0, 2}))}})[0]
          .numbers<double>(),
      (std::vector<double>{0, 0, 0, 0}));
}

TEST(RewriteFp8, EveryExampleOfABatchHasItsOwnScales) {
  const Graph m = mixed(product({3, 4}, {4, 2}), in_f32());
  const Tensor w = random_tensor(2, f32({4, 2}));
  const Tensor x = random_tensor(1, f32({5, 3, 4}), -100, 100);
  const auto batched = interpret(vmap(m, {{"x"}}, 5).graph, {{"x", x}, {"w", w}})[0];
  for (std::int64_t i = 0; i < 5; ++i) {
    const Tensor one = interpret(m, {{"x", x.narrowed(0, i, 1).reshaped({3, 4})}, {"w", w}})[0];
    EXPECT_TRUE(same(batched.narrowed(0, i, 1).reshaped({3, 2}), one));
  }
}

TEST(RewriteFp8, RecipesThatMakeNoSenseAreRefused) {
  PrecisionPolicy f16 = in_f32();
  f16.compute = DType::F16;
  EXPECT_THROW((void)auto_mixed_precision(product({2, 2}, {2, 2}), f16), UserError);
  PrecisionPolicy codes = in_f32();
  codes.fp8->operands = CodeKind::I8;
  EXPECT_THROW((void)auto_mixed_precision(product({2, 2}, {2, 2}), codes), UserError);
}

}  // namespace
}  // namespace ricci::testing::rewrite_fp8_test
