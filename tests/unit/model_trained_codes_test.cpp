// Training for few bits, from a graph in floats to one of codes: what is put in, what is taken out
// again, and that the codes are those it was trained with.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/conv.h"
#include "ricci/compiler/rewrite/pass.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/model/quantization.h"
#include "ricci/model/training.h"
#include "ricci/op/ops.h"

#include "support/compare.h"
#include "support/scratch_folder.h"
#include "support/tool.h"

namespace ricci::testing::model_trained_codes_test {
namespace {

std::size_t count_of(const Graph& graph, std::string_view mnemonic) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op.mnemonic() == mnemonic ? 1 : 0;
  return count;
}

std::vector<op::FakeQuantize> roundings(const Graph& graph) {
  std::vector<op::FakeQuantize> out;
  for (const Node& node : graph.nodes()) {
    if (const auto* op = node.op.as<op::FakeQuantize>()) out.push_back(*op);
  }
  return out;
}

Graph perceptron() {
  Graph g("perceptron");
  const Value x = g.input("x", f32({8, 16}));
  const Value h = relu(matmul(x, g.param("w1", f32({16, 12}))) + g.param("b1", f32({12})));
  g.set_outputs({matmul(h.named("h"), g.param("w2", f32({12, 3})))});
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

std::vector<Feeds> batches() {
  std::vector<Feeds> out;
  for (std::uint64_t b = 0; b < 3; ++b) {
    out.push_back({{"x", random_tensor(100 + b, f32({8, 16}), -1, 3)}});
  }
  return out;
}

Tensor run(const Graph& graph, const Feeds& params, const Feeds& batch) {
  Feeds all = batch;
  all.insert(params.begin(), params.end());
  return interpret(graph, all)[0];
}

double largest_gap(const Tensor& a, const Tensor& b) {
  const auto x = a.numbers<double>();
  const auto y = b.numbers<double>();
  double gap = 0;
  for (std::size_t i = 0; i < x.size(); ++i) gap = std::max(gap, std::abs(x[i] - y[i]));
  return gap;
}

TEST(TrainedCodes, EveryProductReadsRoundedNumbers) {
  const Graph g = perceptron();
  const PassResult result = insert_fake_quantize(g, {.weight_bits = 4, .activation_bits = 6});
  verify(result.graph);
  const auto ops = roundings(result.graph);
  ASSERT_EQ(ops.size(), 4U) << print(result.graph);
  for (const op::FakeQuantize& op : ops) {
    EXPECT_EQ(op.bits, op.asymmetric ? 6 : 4);
    EXPECT_EQ(op.axis.has_value(), !op.asymmetric);
  }
  const PassResult again = insert_fake_quantize(result.graph, {.weight_bits = 2});
  EXPECT_FALSE(again.changed);
}

TEST(TrainedCodes, WhatIsRoundedAndHowIsAskedFor) {
  const Graph g = perceptron();
  const Graph weights = insert_fake_quantize(g, {.activation_bits = 0}).graph;
  EXPECT_EQ(roundings(weights).size(), 2U);
  const Graph one =
      insert_fake_quantize(
          g, {.per_channel = false,
              .products = [](const Node& node) { return node.types[0] == f32({8, 3}); }})
          .graph;
  ASSERT_EQ(roundings(one).size(), 2U);
  for (const op::FakeQuantize& op : roundings(one)) EXPECT_FALSE(op.axis);
  EXPECT_THROW((void)insert_fake_quantize(g, {.weight_bits = 1}), UserError);
  EXPECT_THROW((void)insert_fake_quantize(g, {.activation_bits = 17}), UserError);
  Graph two("activations");
  const Value x = two.input("x", f32({4, 4}));
  two.set_outputs({matmul(x, exp(x))});
  EXPECT_FALSE(insert_fake_quantize(two).changed);
  EXPECT_EQ(roundings(insert_fake_quantize(two, {.activation_products = true}).graph).size(), 2U);
}

TEST(TrainedCodes, SharedOperandsAreRoundedOnceAndF64Too) {
  Graph g("shared");
  const Value x = g.input("x", f64({2, 3}));
  const Value w = g.param("w", f64({3, 3}));
  g.set_outputs({matmul(x, w), matmul(exp(x), w)});
  const Graph rounded = insert_fake_quantize(g).graph;
  EXPECT_EQ(roundings(rounded).size(), 3U) << print(rounded);
}

// A weight of three codes keeps them: nothing is lost on the way to integers.
TEST(TrainedCodes, WeightsKeepTheCodesTheyWereTrainedWith) {
  const Graph g = perceptron();
  const Feeds params = random_params(g);
  for (const std::int64_t bits : {2, 3, 4, 8}) {
    const Graph trained = quantize_for_training(g, {.weights = bits});
    const Quantized q = quantize_to_int8(trained, params, batches());
    verify(q.graph);
    EXPECT_EQ(count_of(q.graph, "fake_quantize"), 0U) << print(q.graph);
    EXPECT_EQ(count_of(q.graph, "q_matmul"), 2U);
    const double most = std::pow(2, bits - 1) - 1;
    std::size_t found = 0;
    for (const auto& [name, value] : q.params) {
      if (value.dtype() != DType::I8) continue;
      ++found;
      double largest = 0;
      for (const double c : value.numbers<double>()) largest = std::max(largest, std::abs(c));
      EXPECT_EQ(largest, most) << name;
    }
    EXPECT_EQ(found, 2U);
    for (const LayerReport& layer : q.layers) EXPECT_GT(layer.weight_sqnr, 100) << bits;
    const Feeds batch = batches()[0];
    const Tensor rounded = run(trained, params, batch);
    EXPECT_LT(largest_gap(run(q.graph, q.params, batch), rounded), 0.15) << bits;
  }
}

TEST(TrainedCodes, LearnedScalesAreTheScalesOfTheCodes) {
  Graph g("learned");
  const Value x = g.input("x", f32({8, 16}));
  const Value w =
      fake_quantize_lsq(g.param("w", f32({16, 4})), g.param("s", f32({4})), {.bits = 3, .axis = 1});
  const Value seen = fake_quantize_lsq(x, g.param("t", f32({1})), {.bits = 4});
  g.set_outputs({matmul(seen, w)});
  Feeds params = {{"w", random_tensor(1, f32({16, 4}), -1, 1)},
                  {"s", Tensor::of<float>({4}, {0.1F, 0.2F, 0.3F, 0.4F})},
                  {"t", Tensor::of<float>({1}, {0.25F})}};
  const Quantized q = quantize_to_int8(g, params, batches());
  EXPECT_EQ(count_of(q.graph, "fake_quantize_lsq"), 0U) << print(q.graph);
  EXPECT_EQ(count_of(q.graph, "q_matmul"), 1U) << print(q.graph);
  // The same codes on both sides: the integers are exact, beyond the training range too.
  for (const Feeds& batch : batches()) {
    EXPECT_LT(largest_gap(run(q.graph, q.params, batch), run(g, params, batch)), 1e-5);
  }
}

TEST(TrainedCodes, ConvolutionsToo) {
  Graph g("images");
  const Value x = g.input("x", f32({2, 3, 8, 8}));
  g.set_outputs({conv(x, g.param("w", f32({5, 3, 3, 3})))});
  const Feeds params = random_params(g);
  const std::vector<Feeds> images = {{{"x", random_tensor(1, f32({2, 3, 8, 8}))}}};
  const Graph trained = quantize_for_training(g, {.weights = 4});
  EXPECT_EQ(roundings(trained)[1].axis, Axis(0)) << print(trained);
  const Quantized q = quantize_to_int8(trained, params, images);
  EXPECT_EQ(count_of(q.graph, "q_conv2d"), 1U) << print(q.graph);
  EXPECT_LT(largest_gap(run(q.graph, q.params, images[0]), run(trained, params, images[0])), 0.1);
}

TEST(TrainedCodes, RoundingsThatOthersReadStay) {
  Graph g("others");
  const Value x = fake_quantize(g.input("x", f32({8, 16})), {.bits = 4, .asymmetric = true});
  g.set_outputs({matmul(x, g.param("w", f32({16, 4}))), x});
  const Quantized q = quantize_to_int8(g, random_params(g), batches());
  EXPECT_EQ(count_of(q.graph, "fake_quantize"), 1U) << print(q.graph);
}

TEST(TrainedCodes, PoliciesChooseByName) {
  QuantizationPolicy policy;
  policy.rules = {{"w1", false}};
  const Graph g = quantize_for_training(perceptron(), {}, policy);
  EXPECT_EQ(roundings(g).size(), 2U) << print(g);
}

// Few steps of training with rounding bring the loss down, and its gradient reaches the params.
TEST(TrainedCodes, TrainingGoesOnInTheTransformedGraph) {
  Graph g("loss");
  const Value x = g.input("x", f32({8, 16}));
  const Value h = relu(matmul(x, g.param("w1", f32({16, 12}))));
  g.set_outputs({mean(softmax_cross_entropy_with_logits(matmul(h, g.param("w2", f32({12, 3}))),
                                                        g.input("labels", i32({8}))))});
  const Graph rounding = quantize_for_training(g, {.weights = 3, .activations = 4});
  Session session;
  TrainingStep step =
      compile_training(session, GraphModule::from_graph(rounding), {.optimizer = Adam{}});
  for (const auto& [name, value] : random_params(g)) step.set_param(name, value);
  const Feeds batch = {{"x", random_tensor(3, f32({8, 16}))},
                       {"labels", Tensor::of<std::int32_t>({8}, {0, 1, 2, 0, 1, 2, 0, 1})}};
  double first = 0;
  double last = 0;
  for (int i = 0; i < 200; ++i) {
    last = step.step(batch).loss.numbers<double>()[0];
    if (i == 0) first = last;
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST(TrainedCodes, TheToolWritesTheProgramToTrain) {
  const std::string program = print(perceptron());
  const auto made = run_tool("quantize - --for-training 4 --activation-bits 0", program);
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_NE(made.out.find("fake_quantize %w1 {bits = 4, axis = 1}"), std::string::npos) << made.out;
  EXPECT_EQ(made.out.find("asymmetric"), std::string::npos);
  const auto by_pass = run_tool("opt - --passes insert_fake_quantize", program);
  EXPECT_NE(by_pass.out.find("fake_quantize %w1 {axis = 1}"), std::string::npos) << by_pass.out;
  const auto both = run_tool("quantize - --for-training 4 --weights-only q4_k", program);
  EXPECT_NE(both.status, 0);
  const auto bits = run_tool("quantize - --for-training 1", program);
  EXPECT_NE(bits.status, 0);
}

}  // namespace
}  // namespace ricci::testing::model_trained_codes_test
