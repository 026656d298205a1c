// Reverse mode as users call it: what it takes, gives and refuses.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"

#include "support/compare.h"

namespace ricci::testing::transform_grad_test {
namespace {

Tensor numbers(Dims dims, std::vector<double> values) {
  return Tensor::from_numbers<double>(f64(std::move(dims)), values);
}

std::size_t count(const Graph& g, std::string_view op) {
  std::size_t n = 0;
  for (const Node& node : g.nodes()) n += node.op.mnemonic() == op ? 1 : 0;
  return n;
}

// loss = Σ (x·w)², with x·w as an auxiliary output
Graph quadratic() {
  Graph g("quadratic");
  const Value x = g.input("x", f64({3}));
  const Value w = g.param("w", f64({3}));
  const Value y = (x * w).named("y");
  g.set_outputs({sum(y * y), y});
  return g;
}

const Feeds Point{{"x", numbers({3}, {1, 2, 3})}, {"w", numbers({3}, {0.5, -1, 2})}};

TEST(TransformGrad, GivesLossAuxiliariesAndGradients) {
  const Transformed t = grad_with_loss(quadratic(), {"x", "w"});
  verify(t.graph);
  EXPECT_EQ(t.graph.name(), "quadratic_grad");
  ASSERT_EQ(t.graph.outputs().size(), 4U);
  Feeds feeds = Point;
  feeds["d_output"] = numbers({}, {1});
  const auto out = interpret(t.graph, feeds);
  EXPECT_TRUE(close(out[0], numbers({}, {0.25 + 4 + 36})));
  EXPECT_TRUE(close(out[1], numbers({3}, {0.5, -2, 6})));
  EXPECT_TRUE(close(out[2], numbers({3}, {0.5, 4, 24})));  // 2 x w²
  EXPECT_TRUE(close(out[3], numbers({3}, {1, -8, 36})));   // 2 x² w
}

// [TR-05] [grad-only-grads]
TEST(TransformGrad, GradGivesGradientsOnly) {
  const Transformed g = grad(quadratic(), {"x"}, {.external_seed = true});
  EXPECT_EQ(g.graph.outputs().size(), 1U);
}

TEST(TransformGrad, ValueAndGradHasItsSeedBuiltIn) {
  const Transformed t = value_and_grad(quadratic(), {"w"});
  EXPECT_FALSE(t.graph.find("d_output").has_value());
  EXPECT_TRUE(close(interpret(t.graph, Point)[2], numbers({3}, {1, -8, 36})));
}

// [wrt-any-node]
TEST(TransformGrad, WrtMayBeAnyValueAndMayRepeat) {
  const Graph g = quadratic();
  const ValueId y = g.outputs()[1];
  const ValueId loss = g.outputs()[0];
  const Transformed t = value_and_grad(g, {y, y, loss, "x"});
  const auto out = interpret(t.graph, Point);
  EXPECT_TRUE(close(out[2], numbers({3}, {1, -4, 12})));
  EXPECT_TRUE(same(out[3], out[2]));
  EXPECT_TRUE(close(out[4], numbers({}, {1})));
  EXPECT_TRUE(close(out[5], numbers({3}, {0.5, 4, 24})));
}

TEST(TransformGrad, SeedsOfSeveralOutputs) {
  const Transformed t = vjp(quadratic(), {"x"});
  Feeds feeds = Point;
  feeds["d_output_0"] = numbers({}, {0});
  feeds["d_output_1"] = numbers({3}, {1, 10, 100});
  EXPECT_TRUE(close(interpret(t.graph, feeds)[2], numbers({3}, {0.5, -10, 200})));
}

// [TR-08] the second application finds another name and says which
TEST(TransformGrad, NamesOfASecondApplicationAreNew) {
  const Transformed once = grad_with_loss(quadratic(), {"x"});
  EXPECT_EQ(once.names.at("d_output"), "d_output");
  const Transformed twice = grad_with_loss(once.graph, {"x"});
  EXPECT_EQ(twice.names.at("d_output"), "d_output_2");
}

// [TR-06] what reaches no `wrt` is not differentiated, whatever it is
TEST(TransformGrad, OnlyWhatMattersIsDifferentiated) {
  Graph g("side");
  const Value x = g.input("x", f64({4}));
  const Value z = g.input("z", f64({4}));
  const Value heavy = tanh(exp(z));
  g.set_outputs({sum(x * heavy)});
  const Transformed t = grad(g, {"x"}, {.external_seed = true});
  EXPECT_EQ(count(t.graph, "activation_backward"), 0U);
  EXPECT_TRUE(t.graph.find("z").has_value());
}

// [grad-dead-work]
TEST(TransformGrad, LeavesNoDeadWork) {
  Graph g("dead");
  const Value x = g.input("x", f64({4}));
  (void)tan(x);
  g.set_outputs({sum(x)});
  const Transformed t = grad(g, {"x"}, {.external_seed = true});
  EXPECT_EQ(count(t.graph, "tan"), 0U);
  EXPECT_EQ(count(t.graph, "reduce"), 0U);
}

// [EW-21] [TR-07]
TEST(TransformGrad, AnIntegerCutsThePathAndTheErrorSaysSo) {
  Graph g("cut");
  const Value x = g.input("x", f64({4}));
  const Value n = cast(x, {.to = DType::I32});
  g.set_outputs({sum(cast(n, {.to = DType::F64}))});
  try {
    (void)grad(g, {"x"});
    FAIL() << "a gradient was found";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::NoGradient);
    EXPECT_NE(std::string(e.what()).find("'cast'"), std::string::npos) << e.what();
  }
  const auto zeros =
      interpret(grad(g, {"x"}, {.zero_missing_wrt = true, .external_seed = true}).graph,
                {{"x", numbers({4}, {1, 2, 3, 4})}, {"d_output", numbers({}, {1})}});
  EXPECT_TRUE(same(zeros[0], numbers({4}, {0, 0, 0, 0})));
}

TEST(TransformGrad, AnUnusedInputIsSaidToBeUnused) {
  Graph g("unused");
  const Value x = g.input("x", f64({4}));
  (void)g.input("z", f64({2}));
  g.set_outputs({sum(x)});
  try {
    (void)grad(g, {"z"});
    FAIL() << "a gradient was found";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("does not depend on it"), std::string::npos) << e.what();
  }
}

TEST(TransformGrad, AnUnknownNameIsRefusedWithASuggestion) {
  try {
    (void)grad(quadratic(), {"ww"});
    FAIL() << "a gradient was found";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::Name);
  }
}

TEST(TransformGrad, AnIntegerLossHasNoGradient) {
  Graph g("integers");
  g.set_outputs({g.input("n", i32({2}))});
  EXPECT_THROW((void)grad(g, {"n"}), UserError);
}

// [wrt-remap] ids of the caller's graph, though nodes in front of them are taken apart
TEST(TransformGrad, IdsAreTheCallers) {
  Graph g("shifted");
  const Value x = g.input("x", f64({2, 4}));
  const Value h = fused_swiglu(x);
  const Value w = g.param("w", f64({2, 2}));
  g.set_outputs({sum(h * w)});
  const Transformed t = value_and_grad(g, {w.id()});
  const Feeds feeds{{"x", random_tensor(1, f64({2, 4}))}, {"w", random_tensor(2, f64({2, 2}))}};
  EXPECT_EQ(count(t.graph, "fused_swiglu"), 1U);  // nothing flows through it, so it stays whole
  Graph only("only");
  only.set_outputs({fused_swiglu(only.input("x", f64({2, 4})))});
  const auto swiglu = interpret(only, {{"x", feeds.at("x")}});
  EXPECT_TRUE(close(interpret(t.graph, feeds)[1], swiglu[0]));
}

// Sizes that only a run decides stay symbolic. [G-05]
TEST(TransformGrad, WorksWithSymbolicSizes) {
  Graph g("symbolic");
  const Value x = g.input("x", f64({"n", 3}));
  const Value w = g.param("w", f64({3}));
  g.set_outputs({mean(tanh(x * w))});
  const Transformed t = value_and_grad(g, {"w", "x"});
  verify(t.graph);
  const Feeds feeds{{"x", random_tensor(1, f64({5, 3}))}, {"w", random_tensor(2, f64({3}))}};
  const Graph bound = g.bind({{"n", 5}});
  const auto expected = interpret(value_and_grad(bound, {"w", "x"}).graph, feeds);
  const auto actual = interpret(t.graph, feeds);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(actual[i], expected[i]));
}

// [EW-14] a tangent has its result's shape
TEST(TransformJvp, TangentsAreBroadcast) {
  Graph g("broadcast");
  const Value a = g.input("a", f64({3}));
  const Value b = g.input("b", f64({2, 3}));
  g.set_outputs({a + b});
  const Transformed t = jvp(g, {"a"});
  EXPECT_EQ(t.graph.type(t.graph.outputs()[1]), f64({2, 3}));
}

// A tangent that is zero is a constant, and costs nothing. [TR-09]
TEST(TransformJvp, ZeroTangentsStaySymbolic) {
  Graph g("zero");
  const Value x = g.input("x", f64({3}));
  const Value z = g.input("z", f64({3}));
  g.set_outputs({tanh(z), stop_gradient(x)});
  const Transformed t = jvp(g, {"x"});
  EXPECT_EQ(count(t.graph, "mul"), 0U);
  const auto out = interpret(t.graph, {{"x", random_tensor(1, f64({3}))},
                                       {"z", random_tensor(2, f64({3}))},
                                       {"tangent_x", random_tensor(3, f64({3}))}});
  EXPECT_TRUE(same(out[2], numbers({3}, {0, 0, 0})));
  EXPECT_TRUE(same(out[3], numbers({3}, {0, 0, 0})));
}

TEST(TransformJvp, LinearizeSplitsPointAndDirection) {
  const Graph g = quadratic();
  const Linearized split = linearize(g, {"x"});
  verify(split.primal.graph);
  verify(split.tangent);
  EXPECT_GT(split.residuals, 0U);
  const auto first = interpret(split.primal.graph, Point);
  Feeds feeds{{"tangent_x", numbers({3}, {1, 10, 100})}};
  for (std::size_t i = 0; i < split.residuals; ++i) {
    feeds["residual_" + std::to_string(i)] = first[g.outputs().size() + i];
  }
  const auto tangents = interpret(split.tangent, feeds);
  Feeds whole = Point;
  whole["tangent_x"] = feeds.at("tangent_x");
  const auto expected = interpret(jvp(g, {"x"}).graph, whole);
  EXPECT_TRUE(close(tangents[0], expected[2]));
  EXPECT_TRUE(close(tangents[1], expected[3]));
}

}  // namespace
}  // namespace ricci::testing::transform_grad_test
