// Checkpointed sub-graphs compute what they did without, and so do their gradients.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/checkpoint.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/vmap.h"

#include "ops/control_bodies.h"
#include "support/compare.h"

namespace ricci::testing::transform_checkpoint_test {
namespace {

struct Layers {
  Graph graph{"layers"};
  std::vector<Value> hidden;
};

// Three layers with a skip connection, a draw of noise and a value used twice.
std::unique_ptr<Layers> layers() {
  auto out = std::make_unique<Layers>();
  Graph& g = out->graph;
  Value h = g.input("x", f64({2, 4}));
  const Value target = g.input("target", f64({2, 4}));
  for (int i = 0; i < 3; ++i) {
    const Value w = g.param("w" + std::to_string(i), f64({4, 4}));
    const Value product = matmul(h, w).named("product" + std::to_string(i));
    const Value noise = rng_uniform(g, {.shape = Dims{2, 4}, .dtype = DType::F64});
    h = tanh(product) * (noise + 0.5) + h;
    out->hidden.push_back(h);
  }
  g.set_outputs({sum(h * target), h});
  return out;
}

Feeds layer_feeds() {
  Feeds feeds{{"x", random_tensor(1, f64({2, 4}), -1, 1)},
              {"target", random_tensor(9, f64({2, 4}), -1, 1)}};
  for (int i = 0; i < 3; ++i) {
    feeds["w" + std::to_string(i)] =
        random_tensor(static_cast<std::uint64_t>(2 + i), f64({4, 4}), -1, 1);
  }
  return feeds;
}

const std::vector<ValueRef> All{"x", "w0", "w1", "w2"};

std::size_t count_checkpoints(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [](const Node& node) { return node.op.is<op::Checkpoint>(); }));
}

void expect_same_program(const Graph& checkpointed, const Graph& plain) {
  verify(checkpointed);
  const Feeds feeds = layer_feeds();
  const auto expected = interpret(value_and_grad(plain, All).graph, feeds);
  const Graph gradient = value_and_grad(checkpointed, All).graph;
  verify(gradient);
  EXPECT_GE(count_checkpoints(gradient), 2U);
  const auto actual = interpret(gradient, feeds);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(same(actual[i], expected[i])) << "output " << i;
  }
}

std::vector<CheckpointOptions> every_policy() {
  return {{},
          {.policy = CheckpointPolicy::Matmuls},
          {.policy = CheckpointPolicy::Named, .names = {"product0", "product1"}}};
}

TEST(Checkpoint, WholeGraphsKeepTheirValuesAndGradients) {
  const auto plain = layers();
  for (const CheckpointOptions& options : every_policy()) {
    const Transformed t = checkpoint(plain->graph, options);
    expect_same_program(t.graph, plain->graph);
    EXPECT_EQ(count_checkpoints(t.graph), 1U);
  }
}

TEST(Checkpoint, PartsKeepTheirValuesAndGradients) {
  const auto plain = layers();
  for (const CheckpointOptions& options : every_policy()) {
    const Transformed t = checkpoint(plain->graph, {"x"}, {plain->hidden[1]}, options);
    expect_same_program(t.graph, plain->graph);
    EXPECT_TRUE(t.map(plain->hidden[1].id()).has_value());
    EXPECT_FALSE(t.map(plain->hidden[0].id()).has_value());
  }
}

// What is computed again stands in the gradient's body, not outside of it.
TEST(Checkpoint, PoliciesSayWhatIsComputedAgain) {
  const auto plain = layers();
  const auto products_again = [&](const CheckpointOptions& options) {
    const Graph g = value_and_grad(checkpoint(plain->graph, options).graph, All).graph;
    std::size_t tanhs = 0;
    std::size_t products = 0;
    const Graph* last = nullptr;
    for (const Node& node : g.nodes()) {
      if (node.op.is<op::Checkpoint>()) last = node.body("body");
    }
    for (const Node& node : last->nodes()) {
      const auto* unary = node.op.as<op::Unary>();
      tanhs += unary != nullptr && unary->kind == UnaryKind::Tanh ? 1 : 0;
      products += node.op.is<op::Matmul>() ? 1 : 0;
    }
    EXPECT_EQ(tanhs, 2U);  // the last one feeds the loss only
    return products - 6;   // two products a layer are the gradient's own
  };
  EXPECT_EQ(products_again({}), 3U);
  EXPECT_EQ(products_again({.policy = CheckpointPolicy::Matmuls}), 0U);
  EXPECT_EQ(products_again({.policy = CheckpointPolicy::Named, .names = {"product1"}}), 2U);
}

TEST(Checkpoint, HigherDerivativesAndBatchesGoThrough) {
  const auto plain = layers();
  for (const CheckpointOptions& options : every_policy()) {
    const Graph wrapped = checkpoint(plain->graph, options).graph;
    const Feeds feeds = layer_feeds();
    Graph loss_only = wrapped;
    loss_only.set_outputs(std::vector{wrapped.outputs()[0]});
    Graph plain_loss = plain->graph;
    plain_loss.set_outputs(std::vector{plain->graph.outputs()[0]});
    const auto expected = interpret(hessian(plain_loss, {"w0"}).graph, feeds);
    EXPECT_TRUE(close(interpret(hessian(loss_only, {"w0"}).graph, feeds)[0], expected[0]));
    Feeds over = feeds;
    over["x"] = random_tensor(8, f64({3, 2, 4}), -1, 1);
    const auto batched = interpret(vmap(wrapped, {{"x"}}, 3).graph, over);
    const auto straight = interpret(vmap(plain->graph, {{"x"}}, 3).graph, over);
    for (std::size_t i = 0; i < straight.size(); ++i) EXPECT_TRUE(same(batched[i], straight[i]));
  }
}

TEST(Checkpoint, TheBuilderKnowsItsNames) {
  Graph g("named");
  const Value x = g.input("x", f64({2}));
  const auto body = [](Graph&, Inputs in) { return Values{sin(in[0]).named("inner") * 2.0}; };
  const Values y =
      checkpoint(std::array{x}, body, {.policy = CheckpointPolicy::Named, .names = {"inner"}});
  g.set_outputs({sum(y[0])});
  EXPECT_NO_THROW((void)grad(g, {"x"}));
  EXPECT_THROW((void)checkpoint(std::array{x}, body,
                                {.policy = CheckpointPolicy::Named, .names = {"outer"}}),
               UserError);
  EXPECT_THROW((void)checkpoint(g, {.policy = CheckpointPolicy::Named, .names = {"outer"}}),
               UserError);
}

TEST(Checkpoint, PartsThatReadThemselvesAreRefused) {
  Graph g("loop");
  const Value x = g.input("x", f64({2}));
  const Value a = sin(x);
  const Value b = cos(a);
  const Value c = a * b;
  g.set_outputs({c});
  try {
    (void)checkpoint(g, {x, b}, {c});
    ADD_FAILURE() << "was accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::Refused) << e.what();
  }
  EXPECT_THROW((void)checkpoint(g, {c}, {b}), UserError);
}

}  // namespace
}  // namespace ricci::testing::transform_checkpoint_test
