// Passes of quantisation: pairs that are put in, moved, taken away, and turned into products of
// codes.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/conv.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/ops.h"

#include "support/compare.h"

namespace ricci::testing::rewrite_quantize_test {
namespace {

std::size_t count_of(const Graph& graph, std::string_view mnemonic) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op.mnemonic() == mnemonic ? 1 : 0;
  return count;
}

const Node& first_of(const Graph& graph, std::string_view mnemonic) {
  for (const Node& node : graph.nodes()) {
    if (node.op.mnemonic() == mnemonic) return node;
  }
  throw std::logic_error("there is no " + std::string(mnemonic));
}

// What is left after a pass, without what nobody reads.
Graph live(const PassResult& result) {
  verify(result.graph);
  return dead_code_elimination(result.graph).graph;
}

Tensor value_of(const Graph& graph, const Feeds& feeds) { return interpret(graph, feeds)[0]; }

Graph product() {
  Graph g("product");
  const Value x = g.input("x", f32({3, 4}));
  const Value w = g.param("w", f32({4, 2}));
  g.set_outputs({relu(matmul(x, w).named("y"))});
  return g;
}

TEST(RewriteQuantize, ARecordPutsPairsBehindValues) {
  const Graph g = product();
  const ValueId x{*g.find("x"), 0};
  const ValueId w{*g.find("w"), 0};
  EXPECT_EQ(insert_q_dq(g, {}).graph.size(), g.size());
  EXPECT_FALSE(insert_q_dq(g, {}).changed);
  const QuantRecord record = {{x, CodeParams::per_tensor(0.5)},
                              {w, CodeParams::per_channel(1, {0.25, 0.125})}};
  const PassResult pairs = insert_q_dq(g, record);
  verify(pairs.graph);
  EXPECT_EQ(pairs.graph.size(), g.size() + 4);
  const Node& matmul = first_of(pairs.graph, "matmul");
  for (const ValueId v : matmul.operands) {
    EXPECT_TRUE(pairs.graph.node(v.node).op.is<op::Dequantize>());
  }
  const auto* q = first_of(pairs.graph, "quantize").op.as<op::Quantize>();
  EXPECT_EQ(q->scales, std::vector<Real>{0.5});
  EXPECT_FALSE(q->axis);
}

TEST(RewriteQuantize, OutputsReadWhatComesBackUnlessReadersAreNamed) {
  const Graph g = product();
  const QuantRecord record = {{g.outputs()[0], CodeParams::per_tensor(0.5)}};
  const Graph all = insert_q_dq(g, record).graph;
  EXPECT_TRUE(all.node(all.outputs()[0].node).op.is<op::Dequantize>());
  const Graph some = insert_q_dq(g, record, [](const Node&) { return false; }).graph;
  EXPECT_TRUE(some.node(some.outputs()[0].node).op.is<op::Unary>());
}

TEST(RewriteQuantize, ParametersThatDoNotFitAreRefused) {
  const Graph g = product();
  const ValueId w{*g.find("w"), 0};
  EXPECT_THROW((void)insert_q_dq(g, {{w, CodeParams::per_channel(1, {0.5})}}), UserError);
  EXPECT_THROW((void)insert_q_dq(g, {{ValueId{99, 0}, CodeParams::per_tensor(1)}}), UserError);
}

TEST(RewriteQuantize, CodesMoveWithTheirElements) {
  Graph g("moves");
  const Value x = g.input("x", f32({2, 6}));
  const op::Quantize q{.scales = {0.1}, .zero_points = {3}};
  const op::Dequantize d{.scales = {0.1}, .zero_points = {3}};
  const Value back = dequantize(quantize(x, q), d);
  const Value moved = narrow(transpose(reshape(back, {.new_shape = {3, 4}}), {.perm = {1, 0}}),
                             {.axis = 0, .start = 1, .len = 2});
  const Value joined = concat({relu(moved), moved}, {.axis = 1});
  g.set_outputs({dequantize(quantize(joined, q), d)});
  const Graph after = live(propagate_codes(g));
  EXPECT_EQ(count_of(after, "quantize"), 1U) << print(after);
  EXPECT_EQ(count_of(after, "dequantize"), 1U) << print(after);
  EXPECT_EQ(count_of(after, "relu"), 0U) << print(after);
  for (const double large : {1.0, 40.0}) {
    const Feeds feeds = {{"x", random_tensor(1, f32({2, 6}), -large, large)}};
    EXPECT_TRUE(value_of(g, feeds).identical(value_of(after, feeds)));
  }
}

TEST(RewriteQuantize, ChannelsFollowTransposesAndNothingElse) {
  Graph g("channels");
  const Value w = g.param("w", f32({3, 4}));
  const op::Quantize q{.axis = 0, .scales = {0.1, 0.2, 0.3, 0.4}};
  const Value t = quantize(transpose(w, {.perm = {1, 0}}), q);
  const Value r = quantize(reshape(w, {.new_shape = {4, 3}}), q);
  g.set_outputs({t, r});
  const Graph after = live(propagate_codes(g));
  EXPECT_EQ(after.node(after.node(after.outputs()[0].node).operands[0].node)
                .op.as<op::Quantize>()
                ->axis->value,
            1);
  EXPECT_TRUE(after.node(after.outputs()[1].node).op.is<op::Quantize>());
  const Feeds feeds = {{"w", random_tensor(1, f32({3, 4}))}};
  EXPECT_TRUE(interpret(g, feeds)[0].identical(interpret(after, feeds)[0]));
}

TEST(RewriteQuantize, PairsWithOtherScalesStay) {
  Graph g("scales");
  const Value x = g.input("x", f32({4}));
  const Value once = dequantize(quantize(x, {.scales = {0.1}}), {.scales = {0.1}});
  g.set_outputs({dequantize(quantize(once, {.scales = {0.3}}), {.scales = {0.3}})});
  EXPECT_EQ(count_of(live(propagate_codes(g)), "quantize"), 2U);
}

// x·w + b, relu, in codes at both ends.
Graph island(bool with_bias, bool with_relu, const CodeParams& out) {
  Graph g("island");
  const Value x = g.input("x", f32({5, 16}));
  const Value w = g.param("w", f32({16, 6}));
  const op::Quantize qx{.scales = {0.02}, .zero_points = {-11}};
  std::vector<Real> scales;
  for (int i = 0; i < 6; ++i) scales.emplace_back(0.01 + 0.002 * i);
  const Value a = dequantize(quantize(x, qx), {.scales = {0.02}, .zero_points = {-11}});
  const Value b =
      dequantize(quantize(w, {.axis = 1, .scales = scales}), {.axis = 1, .scales = scales});
  Value y = matmul(a, b);
  if (with_bias) y = y + g.param("b", f32({6}));
  if (with_relu) y = relu(y);
  const op::Quantize q{.scales = out.scales, .zero_points = out.zero_points, .to = out.to};
  g.set_outputs({quantize(y, q)});
  return g;
}

Feeds island_feeds(bool with_bias) {
  Feeds feeds = {{"x", random_tensor(1, f32({5, 16}))},
                 {"w", random_tensor(2, f32({16, 6}), -1, 1)}};
  if (with_bias) feeds.emplace("b", random_tensor(3, f32({6})));
  return feeds;
}

double largest_gap(const Tensor& a, const Tensor& b) {
  const auto x = a.numbers<double>();
  const auto y = b.numbers<double>();
  double gap = 0;
  for (std::size_t i = 0; i < x.size(); ++i) gap = std::max(gap, std::abs(x[i] - y[i]));
  return gap;
}

TEST(RewriteQuantize, IslandsBecomeProductsOfCodes) {
  for (const bool bias : {false, true}) {
    for (const bool relu : {false, true}) {
      for (const CodeKind to : {CodeKind::I8, CodeKind::U8}) {
        const Graph g = island(bias, relu, {{}, {0.05}, {to == CodeKind::I8 ? -20 : 90}, to});
        const Graph codes = live(convert_to_codes(g));
        EXPECT_EQ(count_of(codes, "q_matmul"), 1U) << print(codes);
        EXPECT_EQ(count_of(codes, "matmul"), 0U) << print(codes);
        EXPECT_EQ(count_of(codes, "relu"), 0U) << print(codes);
        EXPECT_EQ(count_of(codes, "dequantize"), 0U) << print(codes);
        const Feeds feeds = island_feeds(bias);
        const Tensor before = value_of(g, feeds);
        EXPECT_LE(largest_gap(before, value_of(codes, feeds)), 1) << print(codes);
        // The test would notice a result that is all one code.
        const auto numbers = before.numbers<double>();
        EXPECT_NE(*std::ranges::min_element(numbers), *std::ranges::max_element(numbers));
      }
    }
  }
}

TEST(RewriteQuantize, ProductsNobodyQuantisesGiveFloats) {
  const Graph whole = island(true, true, {{}, {0.05}, {}, CodeKind::I8});
  // The same without its last op.
  Graph g("floats");
  const Value x = g.input("x", f32({5, 16}));
  const Value w = g.param("w", f32({16, 6}));
  const Value a = dequantize(quantize(x, {.scales = {0.02}}), {.scales = {0.02}});
  const Value b = dequantize(quantize(w, {.scales = {0.01}}), {.scales = {0.01}});
  g.set_outputs({matmul(a, b)});
  const Graph codes = live(convert_to_codes(g));
  EXPECT_EQ(first_of(codes, "q_matmul").types[0].dtype, DType::I32);
  const Feeds feeds = island_feeds(false);
  EXPECT_LT(largest_gap(value_of(g, feeds), value_of(codes, feeds)), 1e-5);
}

TEST(RewriteQuantize, ConvolutionsWithBiasAndReluBecomeCodes) {
  Graph g("conv");
  const Value x = g.input("x", f32({2, 4, 7, 7}));
  const Value w = g.param("w", f32({6, 2, 3, 3}));
  const Value b = g.param("b", f32({6}));
  std::vector<Real> scales;
  for (int i = 0; i < 6; ++i) scales.emplace_back(0.01 + 0.001 * i);
  const Value a = dequantize(quantize(x, {.scales = {0.02}, .zero_points = {30}}),
                             {.scales = {0.02}, .zero_points = {30}});
  const Value k =
      dequantize(quantize(w, {.axis = 0, .scales = scales}), {.axis = 0, .scales = scales});
  const Value y = conv(a, k, {.stride = {2, 1}, .padding = {1, 1}, .groups = 2});
  const Value biased = y + reshape(b, {.new_shape = {1, 6, 1, 1}});
  g.set_outputs({quantize(relu(biased), {.scales = {0.06}, .zero_points = {-100}})});
  const Graph codes = live(convert_to_codes(g));
  EXPECT_EQ(count_of(codes, "q_conv2d"), 1U) << print(codes);
  EXPECT_EQ(count_of(codes, "conv"), 0U) << print(codes);
  const Feeds feeds = {{"x", random_tensor(1, f32({2, 4, 7, 7}))},
                       {"w", random_tensor(2, f32({6, 2, 3, 3}), -1, 1)},
                       {"b", random_tensor(3, f32({6}))}};
  EXPECT_LE(largest_gap(value_of(g, feeds), value_of(codes, feeds)), 1);
}

TEST(RewriteQuantize, WhatCodesCannotSayStays) {
  Graph g("stays");
  const Value x = g.input("x", f32({5, 4}));
  const Value w = g.param("w", f32({4, 3}));
  const std::vector<Real> rows = {0.1, 0.2, 0.3, 0.4};
  const Value by_row =
      dequantize(quantize(w, {.axis = 0, .scales = rows}), {.axis = 0, .scales = rows});
  const Value a = dequantize(quantize(x, {.scales = {0.1}}), {.scales = {0.1}});
  g.set_outputs({matmul(a, by_row), matmul(a, w)});
  EXPECT_FALSE(convert_to_codes(g).changed);
}

// A value that others read too is computed in floats, once.
TEST(RewriteQuantize, ValuesWithOtherReadersStayFloats) {
  Graph g("shared");
  const Value x = g.input("x", f32({5, 4}));
  const Value w = g.param("w", f32({4, 3}));
  const Value a = dequantize(quantize(x, {.scales = {0.1}}), {.scales = {0.1}});
  const Value b = dequantize(quantize(w, {.scales = {0.1}}), {.scales = {0.1}});
  const Value y = matmul(a, b);
  g.set_outputs({quantize(y, {.scales = {0.1}}), y});
  const Graph codes = live(convert_to_codes(g));
  EXPECT_EQ(count_of(codes, "q_matmul"), 1U) << print(codes);
  EXPECT_EQ(first_of(codes, "q_matmul").types[0].dtype, DType::I32);
}

// [quant-propagate-correct]
struct Fake {
  Graph graph{"fake"};
  Value x = graph.input("x", f32({1, 2, 4, 4}));
  Value state = graph.param("s", f32({1}));

  Value round(Value v, const op::FakeQuantize& op) {
    if (op.scale_mode == ScaleMode::PerBatch) return fake_quantize(v, op);
    return fake_quantize(v, state, op);
  }
  QuantPropagation after(Value y, const QuantPropagationOptions& options = {}) {
    graph.set_outputs({y});
    QuantPropagation out = propagate_fake_quantize(graph, options);
    verify(out.result.graph);
    const Feeds feeds = {{"x", random_tensor(1, f32({1, 2, 4, 4}))},
                         {"s", Tensor::of<float>({1}, {0.125F})}};
    if (!options.through_shrinking) {
      EXPECT_LT(largest_gap(value_of(graph, feeds), value_of(out.result.graph, feeds)), 1e-6);
    }
    return out;
  }
};

const op::FakeQuantize PerBatch{.bits = 4};
const op::FakeQuantize Fixed{.bits = 4, .scale_mode = ScaleMode::Fixed};

TEST(RewriteQuantize, ARedundantRoundingGoesAndWhatIsInBetweenStays) {
  Fake f;
  const Value moved = reshape(f.round(f.x, PerBatch), {.new_shape = {4, 8}});
  const QuantPropagation out = f.after(f.round(transpose(moved, {.perm = {1, 0}}), PerBatch));
  EXPECT_EQ(out.removed, 1U);
  const Graph& g = out.result.graph;
  EXPECT_EQ(count_of(g, "fake_quantize"), 1U);
  // The output is what the second one rounded, not what the first one gave.
  EXPECT_TRUE(g.node(g.outputs()[0].node).op.is<op::Transpose>()) << print(g);
}

TEST(RewriteQuantize, ScalesThatMayShrinkKeepTheSecondRounding) {
  for (const int which : {0, 1, 2}) {
    const auto between = [&](Value v) {
      if (which == 0) return relu(v);
      if (which == 1) return pool(v, {.kind = ReduceKind::Max, .kernel_size = {2, 2}});
      return narrow(v, {.axis = 2, .start = 1, .len = 2});
    };
    Fake batch;
    EXPECT_EQ(batch.after(batch.round(between(batch.round(batch.x, PerBatch)), PerBatch)).removed,
              0U);
    Fake asked;
    EXPECT_EQ(asked
                  .after(asked.round(between(asked.round(asked.x, PerBatch)), PerBatch),
                         {.through_shrinking = true})
                  .removed,
              1U);
    Fake fixed;
    EXPECT_EQ(fixed.after(fixed.round(between(fixed.round(fixed.x, Fixed)), Fixed)).removed, 1U);
  }
}

TEST(RewriteQuantize, OtherAttributesStatesAndRunningMeansStay) {
  Fake bits;
  EXPECT_EQ(bits.after(bits.round(bits.round(bits.x, PerBatch), {.bits = 5})).removed, 0U);
  Fake states;
  const Value other = states.graph.param("t", f32({1}));
  const Value y = fake_quantize(states.round(states.x, Fixed), other, Fixed);
  states.graph.set_outputs({y});
  EXPECT_EQ(propagate_fake_quantize(states.graph).removed, 0U);
  Fake ema;
  const op::FakeQuantize running{.bits = 4, .scale_mode = ScaleMode::Ema};
  EXPECT_EQ(ema.after(ema.round(ema.round(ema.x, running), running)).removed, 0U);
}

TEST(RewriteQuantize, ChannelsAreTrackedThroughTransposesAndReshapes) {
  const auto removed = [](bool reshaped, std::int64_t axis) {
    Fake f;
    const Value first = f.round(f.x, {.bits = 4, .axis = 1});
    const Value moved = reshaped ? reshape(first, {.new_shape = {2, 16}})
                                 : transpose(first, {.perm = {0, 2, 3, 1}});
    return f.after(f.round(moved, {.bits = 4, .axis = axis})).removed;
  };
  EXPECT_EQ(removed(false, 3), 1U);
  EXPECT_EQ(removed(false, 1), 0U);
  EXPECT_EQ(removed(true, 0), 1U);
  EXPECT_EQ(removed(true, 1), 0U);
}

}  // namespace
}  // namespace ricci::testing::rewrite_quantize_test
