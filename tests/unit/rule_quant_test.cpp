// Derivatives of quantising ops against their formulas, and the ways codes' derivatives take.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/quant.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"

namespace ricci::testing::rule_quant_test {
namespace {

Tensor numbers(Type type, std::vector<double> values) {
  return Tensor::from_numbers<double>(std::move(type), values);
}
std::vector<double> values_of(const Tensor& t) { return t.numbers<double>(); }

// The gradient of an output by one input, for a given cotangent.
Tensor pulled_back(const Graph& g, const std::string& wrt, Feeds feeds, Tensor cotangent) {
  const Transformed t = grad(g, {wrt}, {.external_seed = true});
  verify(t.graph);
  feeds["d_output"] = std::move(cotangent);
  return interpret(t.graph, feeds)[0];
}

// [quantize-dtypes] dx = g / scale, in x's dtype; nothing where it saturates, when asked for.
TEST(RuleQuant, QuantizeDividesByItsScale) {
  for (const DType dtype : FloatDTypes) {
    for (const bool clip : {false, true}) {
      Graph g("q");
      const Value x = g.input("x", Type{dtype, {2, 2}});
      g.set_outputs({quantize(x, {.axis = 1, .scales = {0.5, 0.25}, .clip = clip})});
      const Tensor dx = pulled_back(g, "x", {{"x", numbers({dtype, {2, 2}}, {1, 2, -100, 1})}},
                                    numbers(f32({2, 2}), {1, 2, 3, 4}));
      EXPECT_EQ(dx.dtype(), dtype);
      EXPECT_EQ(values_of(dx), (std::vector<double>{2, 8, clip ? 0.0 : 6.0, 16}));
    }
  }
}

TEST(RuleQuant, DequantizeMultipliesByItsScale) {
  Graph g("d");
  const Value q = g.input("q", i8({2, 2}));
  g.set_outputs({dequantize(q, {.axis = 0, .scales = {0.5, 4}, .zero_points = {3, -1}})});
  const Tensor dq = pulled_back(g, "q", {{"q", numbers(i8({2, 2}), {1, 2, 3, 4})}},
                                numbers(f32({2, 2}), {1, 2, 3, 4}));
  EXPECT_EQ(dq.dtype(), DType::F32);
  EXPECT_EQ(values_of(dq), (std::vector<double>{0.5, 1, 12, 16}));
}

// A scale that f16 has no number for is not 0 in the derivatives of what is f16.
TEST(RuleQuant, ScalesAreNotNarrowed) {
  Graph q("q");
  q.set_outputs({quantize(q.input("x", f16({2})), {.scales = {1e-8}})});
  const Transformed t = jvp(q, {"x"});
  const std::vector<Tensor> out = interpret(
      t.graph, {{"x", numbers(f16({2}), {0, 1})}, {"tangent_x", numbers(f16({2}), {0.5, -2})}});
  EXPECT_TRUE(close(out[1], numbers(f32({2}), {0.5e8, -2e8}))) << print(t.graph);

  Graph d("d");
  d.set_outputs({dequantize(d.input("q", i8({2})), {.scales = {1e-8}, .to = DType::F16})});
  const Tensor dq =
      pulled_back(d, "q", {{"q", numbers(i8({2}), {3, 4})}}, numbers(f16({2}), {0.5, -2}));
  EXPECT_TRUE(close(dq, numbers(f32({2}), {0.5e-8, -2e-8})));
}

// y = dequantize(q_matmul(quantize(x), quantize(w))), scales sx, sw and so.
Graph quantized_product() {
  Graph g("chain");
  const Value x = g.input("x", f32({2, 3}));
  const Value w = g.param("w", f32({3, 2}));
  const Value qx = quantize(x, {.scales = {0.5}, .zero_points = {4}});
  const Value qw = quantize(w, {.scales = {0.25}, .zero_points = {-3}});
  // Moved on the way: codes keep their derivative.
  const Value moved = transpose_last(reshape(transpose_last(qx), {.new_shape = {3, 2}}));
  const Value out = q_matmul(moved, qw, {.x_zp = 4, .w_zp = {-3}, .mult = {0.5 * 0.25 / 2}});
  g.set_outputs({dequantize(out, {.scales = {2}})});
  return g;
}

const Feeds Product{{"x", numbers(f32({2, 3}), {1, -2, 0.5, 3, 1.5, -1})},
                    {"w", numbers(f32({3, 2}), {0.25, 1, -0.5, 2, 0.75, -1})}};

// [int-op-float-grads] the straight-through chain reaches the float weight: the true gradient of
// the product of what the codes stand for.
TEST(RuleQuant, ChainOfCodesHasTheGradientOfTheProduct) {
  const Graph g = quantized_product();
  const std::vector<double> dy{1, 2, -1, 0.5};
  const Tensor dw = pulled_back(g, "w", Product, numbers(f32({2, 2}), dy));
  const Tensor dx = pulled_back(g, "x", Product, numbers(f32({2, 2}), dy));
  const auto x = values_of(Product.at("x"));
  const auto w = values_of(Product.at("w"));
  std::vector<double> by_w(6);
  std::vector<double> by_x(6);
  for (std::size_t m = 0; m < 2; ++m) {
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t n = 0; n < 2; ++n) {
        by_w[k * 2 + n] += x[m * 3 + k] * dy[m * 2 + n];
        by_x[m * 3 + k] += dy[m * 2 + n] * w[k * 2 + n];
      }
    }
  }
  EXPECT_TRUE(close(dw, numbers(f32({3, 2}), by_w)));
  EXPECT_TRUE(close(dx, numbers(f32({2, 3}), by_x)));
}

TEST(RuleQuant, ForwardModeAgreesAlongTheChain) {
  const Transformed j = jvp(quantized_product(), {"x", "w"});
  Feeds feeds = Product;
  feeds["tangent_x"] = numbers(f32({2, 3}), {1, 0, 2, -1, 1, 0.5});
  feeds["tangent_w"] = numbers(f32({3, 2}), {0.5, 1, -1, 0, 2, 1});
  const auto out = interpret(j.graph, feeds);
  const auto x = values_of(Product.at("x"));
  const auto w = values_of(Product.at("w"));
  const auto tx = values_of(feeds.at("tangent_x"));
  const auto tw = values_of(feeds.at("tangent_w"));
  std::vector<double> expected(4);
  for (std::size_t m = 0; m < 2; ++m) {
    for (std::size_t n = 0; n < 2; ++n) {
      for (std::size_t k = 0; k < 3; ++k) {
        expected[m * 2 + n] += tx[m * 3 + k] * w[k * 2 + n] + x[m * 3 + k] * tw[k * 2 + n];
      }
    }
  }
  EXPECT_TRUE(close(out[1], numbers(f32({2, 2}), expected)));
}

// [int-op-float-grads] codes that come from outside have a gradient in f32; so has the bias.
TEST(RuleQuant, GradientsOfCodesAreFloats) {
  Graph g("codes");
  const Value x = g.input("x", i8({1, 2}));
  const Value w = g.param("w", i8({2, 2}));
  const Value b = g.param("b", i32({2}));
  g.set_outputs({q_matmul(x, w, b, {.x_zp = 1, .w_zp = {1, -1}, .mult = {0.01, 0.5}})});
  const Feeds feeds{{"x", numbers(i8({1, 2}), {3, 5})},
                    {"w", numbers(i8({2, 2}), {1, 2, 3, 4})},
                    {"b", numbers(i32({2}), {0, 0})}};
  const Transformed t = vjp(g, {"x", "w", "b"});
  Feeds all = feeds;
  all[t.names.at("d_output_0")] = numbers(f32({1, 2}), {1, 2});
  const auto out = interpret(t.graph, all);
  // ū = [0.01, 1]
  EXPECT_TRUE(close(out[1], numbers(f32({1, 2}), {0.01 * 0 + 3, 0.01 * 2 + 5})));
  EXPECT_TRUE(close(out[2], numbers(f32({2, 2}), {0.02, 2, 0.04, 4})));
  EXPECT_TRUE(close(out[3], numbers(f32({2}), {0.01, 1})));
}

// Other integers have none, as before.
TEST(RuleQuant, IndicesHaveNoDerivative) {
  Graph g("gather");
  const Value x = g.input("x", f32({4}));
  const Value i = g.input("i", i32({2}));
  g.set_outputs({gather(x, reshape(i, {.new_shape = {2}}), {.axis = 0})});
  EXPECT_THROW((void)grad(g, {"i"}), AutodiffError);
  EXPECT_THROW((void)jvp(g, {"i"}), AutodiffError);
  Graph h("cast");
  const Value q = h.input("q", i8({2}));
  h.set_outputs({cast(q, {.to = DType::F32})});
  EXPECT_THROW((void)grad(h, {"q"}), AutodiffError);
}

// The largest value is a whole number of steps from 0, however its scale is rounded.
TEST(RuleQuant, ClippedGradientsReachTheLargestValue) {
  for (const DType dtype : FloatDTypes) {
    for (const std::int64_t bits : {2, 3, 4, 8}) {
      constexpr std::int64_t Count = 300;
      std::vector<double> columns;
      for (int row : {1, 2}) {
        for (int i = 0; i < Count; ++i) columns.push_back((1 + i / 137.0) / row);
      }
      Graph g("clipped");
      const Type type{dtype, {2, Count}};
      g.set_outputs({fake_quantize(g.input("x", type),
                                   {.bits = bits, .axis = 1, .ste = SteKind::ClippedIdentity})});
      const Tensor dx =
          pulled_back(g, "x", {{"x", numbers(type, columns)}}, Tensor::splat(type, 1));
      EXPECT_EQ(values_of(dx), std::vector<double>(2 * Count, 1)) << name(dtype) << " " << bits;
    }
  }
}

// [int-op-clip-ste] Sums that i32 does not hold saturate, too: what they wrap round to would not.
TEST(RuleQuant, ClipsWhatLongSumsSaturate) {
  constexpr std::int64_t Depth = 40000;
  constexpr double Sum = 255.0 * 255 * Depth;  // more than 2^31
  const auto all = [&](DType dtype, Dims dims, double v) {
    return Tensor::splat({dtype, std::move(dims)}, v);
  };
  for (const bool saturates : {false, true}) {
    const double mult = (saturates ? 130 : 100) / Sum;
    const double expected = saturates ? 0 : static_cast<double>(static_cast<float>(mult)) * 255;
    Graph g("product");
    const Value x = g.input("x", {DType::U8, {1, Depth}});
    const Value w = g.input("w", i8({Depth, 1}));
    g.set_outputs({q_matmul(x, w, {.w_zp = {-128}, .mult = {mult}, .clip = true})});
    const Tensor dx = pulled_back(
        g, "x", {{"x", all(DType::U8, {1, Depth}, 255)}, {"w", all(DType::I8, {Depth, 1}, 127)}},
        numbers(f32({1, 1}), {1}));
    EXPECT_NEAR(values_of(dx)[Depth - 1], expected, 1e-6 * expected);
    Graph images("convolution");  // of two groups
    const Value i = images.input("x", {DType::U8, {1, 2 * Depth, 1, 1}});
    const Value k = images.input("w", i8({2, Depth, 1, 1}));
    images.set_outputs(
        {q_conv2d(i, k, {.groups = 2, .w_zp = {-128}, .mult = {mult}, .clip = true})});
    const Tensor di = pulled_back(images, "x",
                                  {{"x", all(DType::U8, {1, 2 * Depth, 1, 1}, 255)},
                                   {"w", all(DType::I8, {2, Depth, 1, 1}, 127)}},
                                  numbers(f32({1, 2, 1, 1}), {1, 1}));
    EXPECT_NEAR(values_of(di)[2 * Depth - 1], expected, 1e-6 * expected);
  }
}

// [int-op-clip-ste] nothing passes where the result saturated.
TEST(RuleQuant, ClippedProductsPassNothingWhereTheySaturate) {
  Graph g("clip");
  const Value x = g.input("x", i8({1, 1}));
  const Value w = g.param("w", i8({1, 3}));
  g.set_outputs({q_matmul(x, w, {.mult = {0.5}, .high = 20, .clip = true})});
  const Tensor dw = pulled_back(
      g, "w", {{"x", numbers(i8({1, 1}), {10})}, {"w", numbers(i8({1, 3}), {1, 4, 50})}},
      numbers(f32({1, 3}), {1, 1, 1}));
  EXPECT_EQ(values_of(dw), (std::vector<double>{5, 5, 0}));
}

// K beyond 2^15: sums do not wrap before they are scaled. [qmatmul-general]
TEST(RuleQuant, LongSumsAreExact) {
  constexpr std::int64_t K = 70000;
  Graph g("long");
  const Value x = g.input("x", i8({1, K}));
  const Value w = g.param("w", i8({K, 1}));
  g.set_outputs({q_matmul(x, w, {.mult = {1e-7}})});
  const Feeds feeds{{"x", numbers(i8({1, K}), std::vector<double>(K, -128))},
                    {"w", numbers(i8({K, 1}), std::vector<double>(K, -128))}};
  // 70000·16384·1e-7 = 114.688
  EXPECT_EQ(values_of(interpret(g, feeds)[0]), (std::vector<double>{115}));
}

// [fq-functional-ema] the new state is a result; nothing is changed in place.
TEST(RuleQuant, RunningScalesAreResults) {
  Graph g("ema");
  const Value x = g.input("x", f64({2, 2}));
  const Value s = g.input("s", f64({2}));
  const NodeId id =
      g.add({.op = Op(op::FakeQuantize{.axis = 0, .scale_mode = ScaleMode::Ema, .decay = 0.75}),
             .operands = {x.id(), s.id()},
             .wanted = {true, true}});
  g.set_outputs(std::vector<ValueId>{{id, 0}, {id, 1}});
  const Feeds feeds{{"x", numbers(f64({2, 2}), {1.27, -0.5, 0.254, 0.1})},
                    {"s", numbers(f64({2}), {0, 0.01})}};
  const auto first = interpret(g, feeds);
  EXPECT_TRUE(close(first[1], numbers(f64({2}), {0.01, 0.75 * 0.01 + 0.25 * 0.002})));
  EXPECT_EQ(values_of(feeds.at("s")), (std::vector<double>{0, 0.01}));
  const auto again = interpret(g, feeds);
  EXPECT_TRUE(same(first[0], again[0]));
}

// [fq-backward-scale] in every mode the factor is that of the scale the forward pass used.
TEST(RuleQuant, DerivativesUseTheScaleOfTheForwardPass) {
  const std::vector<double> x{-0.9, -0.3, 0.2, 0.8};
  for (const ScaleMode mode : {ScaleMode::PerBatch, ScaleMode::Ema, ScaleMode::Fixed}) {
    for (const SteKind ste :
         {SteKind::Identity, SteKind::ClippedIdentity, SteKind::Tanh, SteKind::HardTanh}) {
      Graph g("fq");
      const Value in = g.input("x", f64({4}));
      const op::FakeQuantize op{.bits = 3, .ste = ste, .scale_mode = mode, .decay = 0.5};
      const bool stateful = mode != ScaleMode::PerBatch;
      const Value state = stateful ? g.input("s", f64({1})) : Value();
      g.set_outputs({stateful ? fake_quantize(in, state, op) : fake_quantize(in, op)});
      Feeds feeds{{"x", numbers(f64({4}), x)}};
      if (stateful) feeds["s"] = numbers(f64({1}), {0.1});
      const Tensor dx = pulled_back(g, "x", feeds, numbers(f64({4}), {1, 1, 1, 1}));
      const double now = 0.9 / 3;
      const double s = mode == ScaleMode::PerBatch ? now
                       : mode == ScaleMode::Fixed  ? 0.1
                                                   : 0.5 * 0.1 + 0.5 * now;
      std::vector<double> expected;
      for (const double v : x) {
        const double t = std::tanh(v / s);
        const double end = 3 * s * (1 + 1e-15);  // the largest value is in range
        const double factors[] = {1, std::fabs(v) <= end ? 1.0 : 0.0, 1 - t * t,
                                  std::max(0.0, 1 - std::fabs(v / (3 * s)))};
        expected.push_back(factors[static_cast<std::size_t>(ste)]);
      }
      EXPECT_TRUE(close(dx, numbers(f64({4}), expected))) << name_of(mode) << " " << name_of(ste);
    }
  }
}

// [fq-vmap-semantics] statistics are those of each example alone.
TEST(RuleQuant, BatchesKeepTheirStatisticsApart) {
  Graph g("fq");
  g.set_outputs({fake_quantize(g.input("x", f64({2})), {.bits = 3})});
  const Transformed t = vmap(g, {{"x"}}, 2);
  const auto out = interpret(t.graph, {{"x", numbers(f64({2, 2}), {3, 1.2, 30, 12})}});
  EXPECT_TRUE(close(out[0], numbers(f64({2, 2}), {3, 1, 30, 10})));
}

// [lsq-grad-scale] [fq-any-bits]
TEST(RuleQuant, LearnedScalesGetTheirGradient) {
  for (const std::int64_t bits : {2, 3, 5, 8, 16}) {
    for (const bool normalised : {false, true}) {
      Graph g("lsq");
      const Value x = g.input("x", f64({4}));
      const Value s = g.param("s", f64({1}));
      g.set_outputs({fake_quantize_lsq(x, s, {.bits = bits, .grad_scale = normalised})});
      const std::vector<double> at{-2.1, -0.33, 0.41, 7.7};
      const double scale = 0.3;
      const double q = std::exp2(static_cast<double>(bits - 1)) - 1;
      double expected = 0;
      for (const double v : at) {
        const double z = v / scale;
        expected += std::fabs(z) <= q ? std::nearbyint(z) - z : std::copysign(q, z);
      }
      if (normalised) expected /= std::sqrt(4 * q);
      const Tensor ds =
          pulled_back(g, "s", {{"x", numbers(f64({4}), at)}, {"s", numbers(f64({1}), {scale})}},
                      numbers(f64({4}), {1, 1, 1, 1}));
      EXPECT_TRUE(close(ds, numbers(f64({1}), {expected}))) << bits;
    }
  }
}

// The factor 1/√(N·q) has counts in it that f16 does not have.
TEST(RuleQuant, TangentsOfLearnedScalesAreScaledInF16Too) {
  constexpr std::int64_t Count = 1000;
  const auto tangent = [](DType dtype) {
    Graph g("lsq");
    const Value x = g.input("x", {dtype, {Count}});
    const Value s = g.input("s", {dtype, {1}});
    g.set_outputs({fake_quantize_lsq(x, s, {.bits = 8, .grad_scale = true})});
    const Feeds feeds{{"x", numbers({dtype, {Count}}, std::vector<double>(Count, 400))},
                      {"s", numbers({dtype, {1}}, {2})},
                      {"tangent_s", numbers({dtype, {1}}, {1})}};
    return values_of(interpret(jvp(g, {"s"}).graph, feeds)[1])[0];
  };
  const double expected = 127 / std::sqrt(Count * 127.0);
  EXPECT_NEAR(tangent(DType::F32), expected, 1e-6);
  EXPECT_NEAR(tangent(DType::F16), expected, 1e-3);
}

TEST(RuleQuant, BitsOfAWeightAreSeenThroughViews) {  // [qat-weight-grad]
  Graph g("bits");
  const Value x = g.input("x", f32({2, 3}));
  const Value rounded = fake_quantize(x, {.bits = 5});
  const Value view =
      cast(transpose_last(reshape(rounded, {.new_shape = {3, 2}})), {.to = DType::F64});
  EXPECT_EQ(quantized_weight_bits(g, view.id()), 5);
  EXPECT_EQ(quantized_weight_bits(g, rounded.id()), 5);
  EXPECT_EQ(quantized_weight_bits(g, x.id()), std::nullopt);
  EXPECT_EQ(quantized_weight_bits(g, (rounded * 2.0).id()), std::nullopt);
  const Value learned = fake_quantize_lsq(x, g.param("s", f32({1})), {.bits = 4});
  EXPECT_EQ(quantized_weight_bits(g, learned.id()), 4);
}

TEST(RuleQuant, NibblesComeBackFromTheirBytes) {
  Graph g("nibbles");
  const Value q = g.input("q", i8({2, 4}));
  const Value packed = pack_nibbles(q);
  g.set_outputs({packed, unpack_nibbles(packed, true), unpack_nibbles(packed)});
  EXPECT_EQ(packed.type(), u8({2, 2}));
  const auto out = interpret(g, {{"q", numbers(i8({2, 4}), {-8, 7, 0, -1, 3, -3, 1, 5})}});
  EXPECT_EQ(values_of(out[0]), (std::vector<double>{0x78, 0xF0, 0xD3, 0x51}));
  EXPECT_EQ(values_of(out[1]), (std::vector<double>{-8, 7, 0, -1, 3, -3, 1, 5}));
  EXPECT_EQ(values_of(out[2]), (std::vector<double>{8, 7, 0, 15, 3, 13, 1, 5}));
  EXPECT_THROW((void)pack_nibbles(g.input("odd", i8({3}))), UserError);
}

}  // namespace
}  // namespace ricci::testing::rule_quant_test
