// Behaviours of transforms and preparation passes that users of the interface rely on: how many
// outputs there are, which ops are left and which appear.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/batch_regions.h"
#include "ricci/compiler/rewrite/control_flow.h"
#include "ricci/compiler/rewrite/prepare.h"
#include "ricci/compiler/rewrite/unfuse.h"
#include "ricci/ir/verify.h"
#include "ricci/model/autodiff.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/prepare.h"
#include "ricci/transform/vmap.h"

#include "ops/control_bodies.h"
#include "support/count.h"

namespace ricci::testing::transform_behaviours_test {
namespace {

std::size_t outputs(const Graph& graph) {
  verify(graph);
  return graph.outputs().size();
}

Graph binary_graph(BinaryKind kind) {
  Graph g("binary");
  const Value x = g.input("x", f32({4}));
  const Value y = g.input("y", f32({4}));
  g.set_outputs({binary(kind, x, y)});
  return g;
}

TEST(Behaviours, GradOfASumHasTwoOutputs) {
  EXPECT_EQ(outputs(grad(binary_graph(BinaryKind::Add), {"x", "y"}, {.external_seed = true}).graph),
            2U);
}

TEST(Behaviours, GradOfAProductMultipliesTwice) {
  const Transformed t = grad(binary_graph(BinaryKind::Mul), {"x", "y"}, {.external_seed = true});
  EXPECT_EQ(outputs(t.graph), 2U);
  EXPECT_GE(count(t.graph, "mul"), 2U);
}

TEST(Behaviours, GradWithLossGivesTheLossFirst) {
  const Graph forward = binary_graph(BinaryKind::Add);
  const Transformed t = grad_with_loss(forward, {"x", "y"});
  EXPECT_EQ(outputs(t.graph), 3U);
  EXPECT_EQ(t.map(forward.outputs()[0]), t.graph.outputs()[0]);
}

TEST(Behaviours, GradientOfASolveSolvesTheTransposedSystem) {
  Graph g("solve");
  const Value a = g.param("a", f32({2, 2}));
  const Value b = g.input("b", f32({2}));
  g.set_outputs({sum(dense_solve(a, b))});
  const Graph gradient = grad_with_loss(g, {"a", "b"}).graph;
  EXPECT_EQ(outputs(gradient), 3U);
  EXPECT_GE(count(gradient, "dense_solve"), 2U);
  EXPECT_GE(count(gradient, "transpose"), 1U);
  EXPECT_GE(count(gradient, "matmul"), 1U);
  EXPECT_GE(count(gradient, "neg"), 1U);
}

Graph branching(const BodyFunction& yes, const BodyFunction& no) {
  Graph g("branching");
  const Value p = g.input("p", f32({1}));
  const Value x = g.input("x", f32({3}));
  g.set_outputs(cond(p, std::array{x}, yes, no));
  return g;
}

TEST(Behaviours, InlineIfLeavesAWhereAndBothBranches) {
  const Graph g = branching([](Graph&, Inputs in) { return Values{relu(in[0])}; },
                            [](Graph&, Inputs in) { return Values{sigmoid(in[0])}; });
  const Graph flat = inline_if(g).graph;
  EXPECT_EQ(count(flat, "if"), 0U);
  EXPECT_GE(count(flat, "where"), 1U);
  EXPECT_EQ(count(flat, "relu"), 1U);
  EXPECT_EQ(count(flat, "sigmoid"), 1U);
  EXPECT_EQ(outputs(flat), 1U);
}

TEST(Behaviours, GradientPassesThroughAnIf) {
  const Graph g = branching([](Graph&, Inputs in) { return Values{in[0] * in[0]}; },
                            [](Graph&, Inputs in) { return Values{relu(in[0])}; });
  EXPECT_EQ(outputs(grad_with_loss(g, {"x"}).graph), 2U);
}

Graph looping(std::int64_t bound, const BodyFunction& step) {
  Graph g("looping");
  const Value x = g.input("x", f32({2}));
  const auto goes_on = [](Graph&, Inputs in) { return Values{in[0]}; };
  g.set_outputs(while_loop(std::array{x}, goes_on, step, {.max_iterations = bound}).carries);
  return g;
}

TEST(Behaviours, UnrollWhileRepeatsTheBodyUpToItsBound) {
  const Graph g = looping(3, [](Graph&, Inputs in) { return Values{relu(in[0])}; });
  const Graph flat = unroll_while(g).graph;
  EXPECT_EQ(count(flat, "while"), 0U);
  EXPECT_EQ(count(flat, "relu"), 3U);
  EXPECT_EQ(outputs(flat), 1U);
}

TEST(Behaviours, GradientPassesThroughAWhile) {
  const Graph g = looping(2, [](Graph&, Inputs in) { return Values{in[0] * in[0]}; });
  EXPECT_EQ(outputs(grad_with_loss(g, {"x"}).graph), 2U);
}

struct Layer {
  Graph graph{"layer"};
  std::vector<ValueRef> params;
};

// An encoder layer of width 4, two heads and inner width 8, with its parameters in operand order.
Layer encoder_layer(bool has_bias) {
  Layer layer;
  Graph& g = layer.graph;
  std::vector<Value> operands = {g.input("hidden", f32({1, 2, 4}))};
  const auto param = [&](const std::string& name, Dims dims) {
    operands.push_back(g.param(name, f32(std::move(dims))));
    layer.params.emplace_back(name);
  };
  const auto bias = [&](const std::string& name, Dim size) {
    if (has_bias) param(name, {std::move(size)});
  };
  param("qkv_w", {4, 12});
  bias("qkv_b", 12);
  param("out_w", {4, 4});
  bias("out_b", 4);
  param("ln1_g", {4});
  bias("ln1_b", 4);
  param("fc1_w", {4, 8});
  bias("fc1_b", 8);
  param("fc2_w", {8, 4});
  bias("fc2_b", 4);
  param("ln2_g", {4});
  bias("ln2_b", 4);
  operands.push_back(g.input("mask", f32({1, 2, 2, 2})));
  const Value y = fused_transformer_layer(operands, {.num_heads = 2,
                                                     .head_dim = 2,
                                                     .intermediate_size = 8,
                                                     .activation = UnaryKind::Gelu,
                                                     .has_bias = has_bias});
  g.set_outputs({y});
  return layer;
}

TEST(Behaviours, UnfusingATransformerLayerShowsItsParts) {
  const Layer layer = encoder_layer(true);
  ASSERT_EQ(layer.graph.nodes().back().operands.size(), 14U);
  const Graph flat = unfuse_fused_for_autodiff(layer.graph).graph;
  EXPECT_EQ(count(flat, "fused_transformer_layer"), 0U);
  EXPECT_GE(count(flat, "matmul"), 4U);
  EXPECT_EQ(count(flat, "attention"), 1U);
  EXPECT_EQ(count(flat, "layer_norm"), 2U);
  EXPECT_GE(count(flat, "narrow"), 3U);
  EXPECT_EQ(count_ops<op::Unary>(flat), 1U);
  EXPECT_EQ(outputs(flat), 1U);
}

TEST(Behaviours, GradientPassesThroughATransformerLayer) {
  const Layer layer = encoder_layer(true);
  ASSERT_EQ(layer.params.size(), 12U);
  EXPECT_EQ(outputs(grad_with_loss(layer.graph, layer.params).graph), 13U);
}

TEST(Behaviours, GradientPassesThroughALayerWithoutBiases) {
  const Layer layer = encoder_layer(false);
  ASSERT_EQ(layer.params.size(), 6U);
  EXPECT_EQ(outputs(grad_with_loss(layer.graph, layer.params).graph), 7U);
}

Graph state_space() {
  Graph g("state_space");
  const Value x = g.input("x", f32({1, 3, 2}));
  const Value delta = g.input("delta", f32({1, 3, 2}));
  const Value a = g.param("a", f32({2, 4}));
  const Value b = g.input("b", f32({1, 3, 4}));
  const Value c = g.input("c", f32({1, 3, 4}));
  g.set_outputs({selective_scan(x, delta, a, b, c, {.state_size = 4})});
  return g;
}

TEST(Behaviours, UnfusingASelectiveScanWritesOutItsSteps) {
  const Graph flat = unfuse_fused_for_autodiff(state_space()).graph;
  EXPECT_EQ(count(flat, "selective_scan"), 0U);
  EXPECT_EQ(count(flat, "scan"), 0U);
  EXPECT_EQ(count(flat, "concat"), 1U);
  EXPECT_EQ(count(flat, "reduce"), 3U);
  EXPECT_EQ(count(flat, "exp"), 3U);
  EXPECT_GE(count(flat, "narrow"), 12U);
  for (const Node& node : flat.nodes()) {
    if (const auto* reduction = node.op.as<op::Reduce>()) {
      EXPECT_EQ(reduction->op, ReduceKind::Sum);
    }
  }
}

TEST(Behaviours, GradientPassesThroughASelectiveScan) {
  EXPECT_EQ(outputs(grad_with_loss(state_space(), {"a"}).graph), 2U);
}

// Whatever is batched: sequences, decay rates, both.
TEST(Behaviours, ABatchOfSelectiveScansIsOne) {
  const Graph gradients = grad_with_loss(state_space(), {"a"}).graph;
  const std::vector<BatchedInput> all = {{"x"}, {"delta"}, {"a"}, {"b"}, {"c"}};
  for (const auto& batched : {std::vector<BatchedInput>{{"x"}, {"b"}}, {{"a"}}, all}) {
    for (const Graph& graph : {state_space(), gradients}) {
      const Graph many = vmap(graph, batched, 3).graph;
      EXPECT_EQ(count(many, "scan"), 0U);
      EXPECT_EQ(count(many, "selective_scan"), 1U);
    }
  }
}

Graph delta_net() {
  Graph g("delta_net");
  const Value q = g.input("q", f32({1, 3, 2, 4}));
  const Value k = g.input("k", f32({1, 3, 2, 4}));
  const Value v = g.input("v", f32({1, 3, 2, 4}));
  const Value gate = g.input("g", f32({1, 3, 2}));
  const Value beta = g.input("beta", f32({1, 3, 2}));
  g.set_outputs({gated_delta_net(q, k, v, gate, beta, {.state_size = 4})});
  return g;
}

TEST(Behaviours, UnfusingADeltaNetWritesOutItsSteps) {
  const Graph flat = unfuse_fused_for_autodiff(delta_net()).graph;
  EXPECT_EQ(count(flat, "gated_delta_net"), 0U);
  EXPECT_EQ(count(flat, "scan"), 0U);
  EXPECT_EQ(count(flat, "concat"), 1U);
  EXPECT_GE(count(flat, "matmul"), 3U);
  EXPECT_EQ(count(flat, "exp"), 3U);
}

TEST(Behaviours, GradientPassesThroughADeltaNet) {
  const Transformed t = grad_with_loss(delta_net(), {"q", "k", "v", "g", "beta"});
  EXPECT_EQ(outputs(t.graph), 6U);
}

Graph squared_by_function(const CustomFnRules& rules) {
  Graph g("function");
  const Value x = g.input("x", f32({4}));
  const auto square = [](Graph&, Inputs in) { return Values{in[0] * in[0]}; };
  g.set_outputs({sum(custom_fn(std::array{x}, square, rules))});
  return g;
}

TEST(Behaviours, ACustomRuleReplacesTheDerivative) {
  const Graph g = squared_by_function(
      {.vjp = [](Graph&, const VjpInputs& in) { return Values{sin(in.d_outputs[0])}; }});
  const Graph gradient = grad_with_loss(g, {"x"}).graph;
  EXPECT_EQ(outputs(gradient), 2U);
  EXPECT_GE(count(gradient, "sin"), 1U);
}

TEST(Behaviours, AFunctionWithoutARuleIsInlined) {
  const Graph gradient = grad_with_loss(squared_by_function({}), {"x"}).graph;
  EXPECT_EQ(outputs(gradient), 2U);
  EXPECT_EQ(count_everywhere(gradient, "custom_fn"), 0U);
  EXPECT_GE(count(gradient, "mul"), 2U);
}

TEST(Behaviours, GradientOfAScanKeepsItsTrajectory) {
  Graph g("scanning");
  const Value init = g.input("init", f32({2}));
  const Value xs = g.input("xs", f32({3, 2}));
  const auto step = [](Graph&, Inputs in) { return Values{in[0] + in[1]}; };
  g.set_outputs({sum(scan_with_xs(init, std::array{xs}, step, 3))});
  const Graph gradient = grad_with_loss(g, {"init", "xs"}).graph;
  EXPECT_EQ(outputs(gradient), 3U);
  EXPECT_TRUE(std::ranges::any_of(gradient.nodes(), [](const Node& node) {
    const auto* scan = node.op.as<op::Scan>();
    return scan != nullptr && scan->save_trajectory;
  }));
}

TEST(Behaviours, AModuleOfBlocksIsDifferentiated) {
  const GraphModule m = GraphModule::define("dense", [](Graph& g) {
    const Value x = g.input("x", f32({2, 3}));
    const Value w = g.param("w", f32({3, 4}));
    const Value b = g.param("b", f32({4}));
    return linear(x, w, b);
  });
  EXPECT_EQ(count(m.lower().module.graph(), "fused_matmul_bias_act"), 1U);
  const Graph gradient = grad_with_loss_module(m, {"w"}).graph;
  EXPECT_EQ(count(gradient, "fused_matmul_bias_act"), 0U);
  EXPECT_GE(outputs(gradient), 2U);
}

// Slices along axis 0, relu on each, joined again.
Graph sliced_relu() {
  Graph g("sliced");
  const Value x = g.input("x", f32({2, 3, 8, 8}));
  std::vector<Value> rows;
  for (std::int64_t i = 0; i < 2; ++i) {
    rows.push_back(relu(narrow(x, {.axis = 0, .start = i, .len = 1})));
  }
  g.set_outputs({concat(rows, {.axis = 0})});
  return g;
}

TEST(Behaviours, BatchPreprocessingIsFusedAndTakenApartAgain) {
  const Graph fused = fuse_batch_preprocess(mark_batch_slice_regions(sliced_relu()).graph).graph;
  EXPECT_EQ(count(fused, "batch_elementwise_region"), 1U);
  const Graph prepared = prepare_graph_for_ad(fused).graph;
  EXPECT_EQ(count(prepared, "batch_elementwise_region"), 0U);
  EXPECT_EQ(outputs(prepared), 1U);
}

TEST(Behaviours, ThePreparationPassIsThePreparation) {
  const Graph fused = fuse_batch_preprocess(mark_batch_slice_regions(sliced_relu()).graph).graph;
  const Pass* pass = find_pass("prepare_for_autodiff");
  ASSERT_NE(pass, nullptr);
  EXPECT_EQ(pass->run(fused).graph.size(), prepare_graph_for_ad(fused).graph.size());
}

}  // namespace
}  // namespace ricci::testing::transform_behaviours_test
