// Post-training quantisation end to end: int8 and weights in few bits, policies, reports, params.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/conv.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/model/quantization.h"
#include "ricci/op/ops.h"
#include "ricci/runtime/compiled_graph.h"

#include "support/compare.h"

namespace ricci::testing::model_quantization_test {
namespace {

std::size_t count_of(const Graph& graph, std::string_view mnemonic) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op.mnemonic() == mnemonic ? 1 : 0;
  return count;
}

Graph perceptron() {
  Graph g("perceptron");
  const Value x = g.input("x", f32({8, 32}));
  const Value h = relu(matmul(x, g.param("w1", f32({32, 24}))) + g.param("b1", f32({24})));
  g.set_outputs({matmul(h.named("h"), g.param("w2", f32({24, 5}))) + g.param("b2", f32({5}))});
  return g;
}

Feeds random_params(const Graph& graph) {
  Feeds out;
  std::uint64_t seed = 10;
  for (const NodeId id : graph.params()) {
    out.emplace(*graph.node(id).leaf_name(), random_tensor(seed++, graph.node(id).types[0], -1, 1));
  }
  return out;
}

std::vector<Feeds> random_batches(const Graph& graph, std::uint64_t count) {
  std::vector<Feeds> out(count);
  for (std::uint64_t b = 0; b < count; ++b) {
    for (const NodeId id : graph.inputs()) {
      out[b].emplace(*graph.node(id).leaf_name(), random_tensor(100 + b, graph.node(id).types[0]));
    }
  }
  return out;
}

Tensor run(const Graph& graph, const Feeds& params, const Feeds& batch) {
  Feeds all = batch;
  all.insert(params.begin(), params.end());
  return interpret(graph, all)[0];
}

// Signal to error in dB.
double sqnr(const Tensor& exact, const Tensor& other) {
  const auto x = exact.numbers<double>();
  const auto y = other.numbers<double>();
  double signal = 0;
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    signal += x[i] * x[i];
    error += (x[i] - y[i]) * (x[i] - y[i]);
  }
  return 10 * std::log10(signal / error);
}

TEST(ModelQuantization, APerceptronInInt8) {
  const Graph g = perceptron();
  const Feeds params = random_params(g);
  const std::vector<Feeds> batches = random_batches(g, 3);
  const Quantized q = quantize_to_int8(g, params, batches);
  verify(q.graph);
  EXPECT_EQ(count_of(q.graph, "q_matmul"), 2U) << print(q.graph);
  EXPECT_EQ(count_of(q.graph, "matmul"), 0U);
  EXPECT_EQ(count_of(q.graph, "quantize"), 1U) << print(q.graph);
  // The weights are codes, and the params of before are gone.
  ASSERT_TRUE(q.graph.find("w1_codes")) << print(q.graph);
  EXPECT_EQ(q.params.at("w1_codes").type(), i8({32, 24}));
  EXPECT_FALSE(q.graph.find("w1"));
  EXPECT_EQ(q.params.at("b1_codes").type(), i32({24}));
  EXPECT_EQ(q.params.at("b2").type(), f32({5}));
  const Feeds fresh = random_batches(g, 4)[3];
  EXPECT_GT(sqnr(run(g, params, fresh), run(q.graph, q.params, fresh)), 30);
}

TEST(ModelQuantization, ReportsSayWhatIsLost) {
  const Graph g = perceptron();
  const Feeds params = random_params(g);
  const std::vector<Feeds> batches = random_batches(g, 2);
  const Quantized q = quantize_to_int8(g, params, batches);
  ASSERT_EQ(q.layers.size(), 2U);
  EXPECT_EQ(q.layers[0].became, "q_matmul i8");
  EXPECT_EQ(q.layers[1].became, "q_matmul i32");
  for (const LayerReport& layer : q.layers) {
    EXPECT_GT(layer.weight_sqnr, 40);
    EXPECT_GT(layer.sqnr, 30);
    EXPECT_GT(layer.max_error, 0);
    EXPECT_EQ(layer.saturated, 0);
  }
  EXPECT_EQ(q.layers[0].compared, 2 * 8 * 24);
  ASSERT_EQ(q.outputs.size(), 1U);
  // The same by hand.
  double signal = 0;
  double error = 0;
  for (const Feeds& batch : batches) {
    const auto x = run(g, params, batch).numbers<double>();
    const auto y = run(q.graph, q.params, batch).numbers<double>();
    for (std::size_t i = 0; i < x.size(); ++i) {
      signal += x[i] * x[i];
      error += (x[i] - y[i]) * (x[i] - y[i]);
    }
  }
  EXPECT_NEAR(q.outputs[0].sqnr, 10 * std::log10(signal / error), 1e-6);
  const std::string table = q.report();
  EXPECT_NE(table.find("saturated"), std::string::npos);
  EXPECT_NE(table.find("q_matmul i8"), std::string::npos) << table;
}

TEST(ModelQuantization, ASmallRangeSaturates) {
  const Graph g = perceptron();
  QuantizationPolicy policy;
  policy.activations = {.method = RangeMethod::Percentile, .percentile = 80};
  const std::vector<Feeds> batches = random_batches(g, 2);
  const Quantized q = quantize_to_int8(g, random_params(g), batches, policy);
  // A fifth on each side.
  EXPECT_NEAR(q.layers[0].saturated, 0.4, 0.05);
}

TEST(ModelQuantization, ColumnsOfTheirOwnAreBetter) {
  const Graph g = perceptron();
  Feeds params = random_params(g);
  // Columns of very different sizes.
  std::vector<double> w = params.at("w1").numbers<double>();
  for (std::size_t i = 0; i < w.size(); ++i) w[i] *= std::pow(2.0, static_cast<double>(i % 24) / 3);
  params["w1"] = Tensor::from_numbers<double>(f32({32, 24}), w);
  const std::vector<Feeds> batches = random_batches(g, 2);
  QuantizationPolicy policy;
  const Quantized columns = quantize_to_int8(g, params, batches, policy);
  policy.per_channel = false;
  const Quantized whole = quantize_to_int8(g, params, batches, policy);
  EXPECT_GE(columns.layers[0].weight_sqnr, whole.layers[0].weight_sqnr);
  EXPECT_EQ(whole.graph.size() > 0, true);
}

TEST(ModelQuantization, ParamsStayWhenAsked) {
  const Graph g = perceptron();
  const Feeds params = random_params(g);
  QuantizationPolicy policy;
  policy.store_codes = false;
  const std::vector<Feeds> batches = random_batches(g, 2);
  const Quantized q = quantize_to_int8(g, params, batches, policy);
  for (const NodeId id : g.leaves()) EXPECT_TRUE(q.graph.find(*g.node(id).leaf_name()));
  const Quantized stored = quantize_to_int8(g, params, batches);
  EXPECT_TRUE(
      run(q.graph, params, batches[0]).identical(run(stored.graph, stored.params, batches[0])));
}

TEST(ModelQuantization, PoliciesChooseByName) {
  const Graph g = perceptron();
  const Feeds params = random_params(g);
  const std::vector<Feeds> batches = random_batches(g, 1);
  const auto left = [&](std::vector<QuantizationPolicy::Rule> rules) {
    QuantizationPolicy policy;
    policy.rules = std::move(rules);
    return count_of(quantize_to_int8(g, params, batches, policy).graph, "matmul");
  };
  EXPECT_EQ(left({}), 0U);
  EXPECT_EQ(left({{"w2", false}}), 1U);
  EXPECT_EQ(left({{"*", false}, {"w?", true}}), 0U);
  EXPECT_EQ(left({{"matmul", false}, {"w1", true}}), 1U);
  EXPECT_EQ(left({{"matmul", false}}), 2U);
}

// conv, bias, relu, pooling, conv, flattened into a product.
Graph network() {
  Graph g("network");
  const Value x = g.input("x", f32({4, 3, 10, 10}));
  const auto layer = [&](Value v, const char* w, const char* b, Type type, std::int64_t out) {
    const Value y = conv(v, g.param(w, std::move(type)), {.padding = {1, 1}});
    return relu(y + reshape(g.param(b, f32({out})), {.new_shape = {1, out, 1, 1}}));
  };
  const Value first = layer(x, "k1", "c1", f32({8, 3, 3, 3}), 8);
  const Value pooled =
      pool(first, {.kind = ReduceKind::Max, .kernel_size = {2, 2}, .stride = {2, 2}});
  const Value second = layer(pooled, "k2", "c2", f32({6, 8, 3, 3}), 6);
  const Value flat = reshape(second, {.new_shape = {4, 150}});
  g.set_outputs({matmul(flat, transpose(g.param("w", f32({7, 150})), {.perm = {1, 0}}))});
  return g;
}

TEST(ModelQuantization, AConvolutionalNetworkStaysInCodes) {
  const Graph g = network();
  const Feeds params = random_params(g);
  const std::vector<Feeds> batches = random_batches(g, 2);
  for (const RangeMethod method :
       {RangeMethod::MinMax, RangeMethod::Percentile, RangeMethod::Mse, RangeMethod::Entropy}) {
    QuantizationPolicy policy;
    policy.activations.method = method;
    const Quantized q = quantize_to_int8(g, params, batches, policy);
    verify(q.graph);
    EXPECT_EQ(count_of(q.graph, "q_conv2d"), 2U) << print(q.graph);
    EXPECT_EQ(q.layers[0].became, "q_conv2d i8") << q.report();
    EXPECT_EQ(q.layers[1].became, "q_conv2d i8") << q.report();
    EXPECT_EQ(q.layers[2].became, "q_matmul i32") << q.report();
    EXPECT_EQ(count_of(q.graph, "transpose"), 0U) << print(q.graph);
    const double floor = method == RangeMethod::Entropy ? 10 : 22;
    EXPECT_GT(sqnr(run(g, params, batches[0]), run(q.graph, q.params, batches[0])), floor)
        << q.report();
  }
}

TEST(ModelQuantization, DevicesAgreeWithTheReference) {
  const Graph g = network();
  const Feeds params = random_params(g);
  const std::vector<Feeds> batches = random_batches(g, 1);
  const Quantized q = quantize_to_int8(g, params, batches);
  const Tensor expected = run(q.graph, q.params, batches[0]);
  for (const DeviceListing& l : Device::all()) {
    if (!l.why_not.empty()) continue;
    Feeds all = batches[0];
    all.insert(q.params.begin(), q.params.end());
    const Tensor now = compile(q.graph, Device::named(l.name)).run(all)[0];
    EXPECT_GT(sqnr(expected, now), 80) << l.name;
    const Quantized again = quantize_to_int8(g, params, batches, {}, Device::named(l.name));
    EXPECT_NEAR(again.outputs[0].sqnr, q.outputs[0].sqnr, 0.5) << l.name;
  }
}

TEST(ModelQuantization, ProductsOfActivationsWhenAsked) {
  Graph g("scores");
  const Value a = g.input("a", f32({2, 5, 8}));
  const Value b = g.input("b", f32({2, 8, 6}));
  g.set_outputs({matmul(a, b)});
  std::vector<Feeds> batches = {
      {{"a", random_tensor(1, f32({2, 5, 8}))}, {"b", random_tensor(2, f32({2, 8, 6}))}}};
  const Quantized plain = quantize_to_int8(g, {}, batches);
  EXPECT_EQ(plain.layers[0].why, "of two activations");
  EXPECT_EQ(count_of(plain.graph, "matmul"), 1U);
  QuantizationPolicy policy;
  policy.activation_products = true;
  const Quantized q = quantize_to_int8(g, {}, batches, policy);
  EXPECT_EQ(count_of(q.graph, "q_matmul"), 1U) << print(q.graph);
  EXPECT_GT(q.outputs[0].sqnr, 30);
}

TEST(ModelQuantization, FusedOpsAreWrittenOutFirst) {
  Graph g("fused");
  const Value x = g.input("x", f32({4, 8}));
  g.set_outputs({fused_matmul_bias_act(x, g.param("w", f32({8, 3})), g.param("b", f32({3})))});
  const std::vector<Feeds> batches = random_batches(g, 1);
  const Quantized q = quantize_to_int8(g, random_params(g), batches);
  EXPECT_EQ(count_of(q.graph, "q_matmul"), 1U) << print(q.graph);
}

TEST(ModelQuantization, ResidualsKeepTheirFloats) {
  Graph g("residual");
  const Value x = g.input("x", f32({4, 8}));
  const Value y = x + matmul(x, g.param("w", f32({8, 8})));
  g.set_outputs({y});
  const std::vector<Feeds> batches = random_batches(g, 1);
  const Quantized q = quantize_to_int8(g, random_params(g), batches);
  // The sum reads the input itself.
  const Node& sum = q.graph.node(q.graph.outputs()[0].node);
  EXPECT_TRUE(q.graph.node(sum.operands[0].node).op.is<op::Input>()) << print(q.graph);
}

TEST(ModelQuantization, WeightsInEveryScheme) {
  Graph g("weights");
  const Value x = g.input("x", f32({3, 256}));
  const Value h = matmul(x, g.param("w", f32({256, 10})));
  g.set_outputs({matmul(h, g.param("v", f32({10, 4})))});
  const Feeds params = random_params(g);
  const std::vector<Feeds> batches = random_batches(g, 1);
  std::vector<std::string> names = {"int8_block_32", "int8_block_asym_16", "int4_block_32",
                                    "fp8_e4m3",      "fp8_e5m2",           "nvfp4_block"};
  for (const quant::FormatInfo& f : quant::all_formats()) {
    if (f.block_length > 1) names.emplace_back(f.name);
  }
  for (const std::string& name : names) {
    const quant::Scheme scheme = *quant::scheme_from_name(name);
    const Quantized q = quantize_weights(g, params, scheme, {}, batches);
    verify(q.graph);
    EXPECT_EQ(q.layers[0].became, name);
    const bool blocks = scheme.is_packed();
    EXPECT_EQ(q.layers[1].why.empty(), !blocks) << q.report();
    EXPECT_FALSE(q.params.contains("w"));
    EXPECT_EQ(q.params.contains("v"), blocks);
    EXPECT_GT(q.outputs[0].sqnr, 6) << name;
    EXPECT_NEAR(sqnr(run(g, params, batches[0]), run(q.graph, q.params, batches[0])),
                q.outputs[0].sqnr, 1e-6)
        << name;
  }
}

TEST(ModelQuantization, ProductsOfNothingStay) {
  Graph g("nothing");
  const Value x = g.input("x", f32({2, 32}));
  const Value none = matmul(x, g.param("none", f32({32, 0})));
  g.set_outputs(
      {none, matmul(none, g.param("deep", f32({0, 4}))), matmul(x, g.param("w", f32({32, 4})))});
  const Feeds params = random_params(g);
  const std::vector<Feeds> batches = random_batches(g, 1);
  for (const char* name : {"int8_block_32", "int4_block_32", "nvfp4_block", "q8_0"}) {
    const Quantized q = quantize_weights(g, params, *quant::scheme_from_name(name), {}, batches);
    verify(q.graph);
    EXPECT_EQ(q.layers[0].why, "of no elements");
    EXPECT_EQ(q.layers[1].why, "of no elements");
    EXPECT_EQ(q.layers[2].became, name);
  }
  const Quantized q = quantize_to_int8(g, params, batches);
  EXPECT_EQ(q.layers[1].why, "of no elements");
  EXPECT_EQ(q.layers[2].why, "");
}

TEST(ModelQuantization, ParamsAreFoldedOnceAndOnlyWhereItPays) {
  Graph g("folds");
  const Value x = g.input("x", f32({2, 3}));
  const Value w = g.param("w", f32({4, 3}));
  const Value b = g.param("b", f32({}));
  const Value t = transpose(w, {.perm = {1, 0}}) * 2.0;
  const Value wide = expand(b, {.target_shape = {2, 4}});
  g.set_outputs({matmul(x, t.named("doubled")) + wide, x + g.param("open", f32({3}))});
  Feeds params = {{"w", random_tensor(1, f32({4, 3}))}, {"b", random_tensor(2, f32({}))}};
  const FoldedParams folded = fold_params(g, params);
  verify(folded.graph);
  EXPECT_EQ(folded.params.at("doubled").type(), f32({3, 4}));
  EXPECT_FALSE(folded.graph.find("w"));
  EXPECT_TRUE(folded.graph.find("b")) << print(folded.graph);
  EXPECT_TRUE(folded.graph.find("open"));
  Feeds before = params;
  Feeds after = folded.params;
  for (Feeds* feeds : {&before, &after}) {
    feeds->emplace("x", random_tensor(3, f32({2, 3})));
    feeds->emplace("open", random_tensor(4, f32({3})));
  }
  EXPECT_TRUE(interpret(g, before)[0].identical(interpret(folded.graph, after)[0]));
}

TEST(ModelQuantization, MistakesAreSaid) {
  const Graph g = perceptron();
  const std::vector<Feeds> batches = random_batches(g, 1);
  EXPECT_THROW((void)quantize_to_int8(g, random_params(g), {}), UserError);
  EXPECT_THROW((void)quantize_to_int8(g, {}, batches), UserError);
  Feeds broken = random_params(g);
  broken["w1"] = Tensor::splat(f32({32, 24}), std::nan(""));
  EXPECT_THROW((void)quantize_weights(g, broken, *quant::scheme_from_name("q8_0")), UserError);
  EXPECT_THROW((void)quantize_to_int8(g, broken, batches), UserError);
}

}  // namespace
}  // namespace ricci::testing::model_quantization_test
