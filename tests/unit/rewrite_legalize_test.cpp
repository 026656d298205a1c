#include <array>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/legalize.h"
#include "ricci/interp/interpreter.h"
#include "ricci/op/custom.h"
#include "ricci/op/ops.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"

namespace ricci::testing::rewrite_legalize_test {
namespace {

std::size_t count(const Graph& graph, OpKind kind) {
  std::size_t n = 0;
  for (const Node& node : graph.nodes()) {
    n += node.op.kind() == kind ? 1 : 0;
    for (const Body& b : node.bodies) n += count(*b.graph, kind);
  }
  return n;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// [broadcast-native] Only what no simple kernel broadcasts is written out.
TEST(Legalize, BroadcastInTheMiddleOfAShapeBecomesExplicit) {
  Graph g("bias");
  const Value x = g.input("x", f32({2, 3, 4, 5}));
  const Value channel = g.input("channel", f32({1, 3, 1, 1}));
  const Value row = g.input("row", f32({5}));
  const Value one = g.input("one", f32({1, 1}));
  const Value a = x + channel;
  const Value b = where(gt(a, channel), a, channel);
  g.set_outputs({a, x + row, x * one, b});
  const PassResult r = legalize_broadcast(g);
  EXPECT_TRUE(r.changed);
  EXPECT_EQ(count(r.graph, OpKind::Expand), 3U);  // add, gt and where
  EXPECT_EQ(r.graph.type(*r.map(a.id())), a.type());
  EXPECT_FALSE(legalize_broadcast(r.graph).changed);
  Feeds feeds;
  for (const NodeId id : g.inputs()) {
    const auto* in = g.node(id).op.as<op::Input>();
    feeds.emplace(in->name, random_tensor(id + 1, in->type));
  }
  const std::vector<Tensor> expected = interpret(g, feeds);
  const std::vector<Tensor> actual = interpret(r.graph, feeds);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same(actual[i], expected[i]));
}

TEST(Legalize, TrailingPartsStay) {
  Graph g("bias");
  g.set_outputs({g.input("x", f32({4, 8})) + g.input("b", f32({8}))});
  EXPECT_FALSE(legalize_broadcast(g).changed);
}

// [lower-backward-exact] The derivative is that of the function, to the bit of its expansion.
TEST(Legalize, BackwardOfFunctionsInPrimitives) {
  for (const UnaryKind kind : {UnaryKind::Tan, UnaryKind::Gelu, UnaryKind::Abs, UnaryKind::Sqrt,
                               UnaryKind::Rsqrt, UnaryKind::Tanh, UnaryKind::Silu}) {
    Graph g("backward");
    const Value x = g.input("x", f64({6}));
    const Value dy = g.input("dy", f64({6}));
    g.set_outputs({activation_backward(x, dy, {.kind = kind}), relu_backward(x, dy)});
    const PassResult r = lower_backward_ops(g);
    EXPECT_EQ(count(r.graph, OpKind::ActivationBackward), 0U);
    EXPECT_EQ(count(r.graph, OpKind::ReluBackward), 0U);
    const Feeds feeds = {{"x", Tensor::of<double>({6}, {-1.5, -0.1, 0, 0.3, 1, 7})},
                         {"dy", random_tensor(1, f64({6}))}};
    const std::vector<Tensor> expected = interpret(g, feeds);
    const std::vector<Tensor> actual = interpret(r.graph, feeds);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(close(actual[i], expected[i])) << static_cast<int>(kind);
    }
  }
}

Graph mixed_graph() {
  Graph g("mixed");
  const Value x = g.input("x", f32({3, 4}));
  const Value n = layer_norm(x, g.param("gamma", f32({4})), g.param("beta", f32({4})), {.axis = 1});
  const Value total = reduce(n * n, {.op = ReduceKind::Sum, .axes = {0, 1}});
  const std::vector<Value> chosen = cond(
      gt(total, scalar_like(total, 0)), std::array{total},
      [](Graph&, std::span<const Value> v) { return std::vector{tanh(v[0])}; },
      [](Graph&, std::span<const Value> v) { return std::vector{v[0] * 2.0}; });
  g.set_outputs({chosen[0]});
  return g;
}

// [legalize-typed] Claims are about nodes, not only kinds; bodies are looked into.
TEST(Legalize, FindsWhatIsNotClaimed) {
  const Graph g = mixed_graph();
  EXPECT_TRUE(legalize_for_backend(g, {}).empty());
  SupportedOps ops = SupportedOps::only(
      {OpKind::Binary, OpKind::Compare, OpKind::Reduce, OpKind::If, OpKind::LayerNorm});
  const std::vector<UnsupportedNode> left = legalize_for_backend(g, ops);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].op, "tanh");
  EXPECT_EQ(left[0].inside, "if then");
  EXPECT_TRUE(left[0].where.known());
  ops.require(OpKind::Reduce, "one axis", [](const Graph&, const Node& node) {
    return node.op.as<op::Reduce>()->axes.size() == 1;
  });
  const std::vector<UnsupportedNode> more = legalize_for_backend(g, ops);
  ASSERT_EQ(more.size(), 2U);
  EXPECT_EQ(more[0].reason, "one axis");
  const std::string text = format_legalize_error("toy", more);
  EXPECT_TRUE(contains(text, "toy cannot run 2 nodes")) << text;
  EXPECT_TRUE(contains(text, "tanh x1")) << text;
  EXPECT_TRUE(contains(text, "reduce (one axis is needed) x1")) << text;
  EXPECT_TRUE(contains(text, "rewrite_legalize_test.cpp")) << text;
}

TEST(Legalize, RewritesUntilEverythingIsClaimed) {
  const Graph g = mixed_graph();
  SupportedOps ops =
      SupportedOps::only({OpKind::Unary, OpKind::Binary, OpKind::Compare, OpKind::Where,
                          OpKind::Reduce, OpKind::Reshape, OpKind::Expand, OpKind::Cast});
  ops.require(OpKind::Reduce, "one axis", [](const Graph&, const Node& node) {
    return node.op.as<op::Reduce>()->axes.size() <= 1;
  });
  const PassResult r = legalize_or_rewrite_for_backend(g, ops, "toy");
  EXPECT_TRUE(legalize_for_backend(r.graph, ops).empty());
  const Feeds feeds = {{"x", random_tensor(1, f32({3, 4}))},
                       {"gamma", random_tensor(2, f32({4}))},
                       {"beta", random_tensor(3, f32({4}))}};
  EXPECT_TRUE(close(interpret(r.graph, feeds)[0], interpret(g, feeds)[0]));
}

class Opaque final : public CustomOp {
 public:
  [[nodiscard]] std::string name() const override { return "opaque"; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes&) const override {
    return {operands[0]};
  }
  void eval(const Bytes&, EvalContext&) const override {}
};

TEST(Legalize, SaysWhatIsLeft) {
  Registry registry;
  registry.add(std::make_shared<Opaque>());
  Graph g("opaque", registry);
  const Value x = g.input("x", f32({3}));
  g.set_outputs(g.add_node(Op(op::Custom{.name = "opaque"}), std::array{x}));
  try {
    (void)legalize_or_rewrite_for_backend(g, SupportedOps::only({OpKind::Unary}), "toy");
    ADD_FAILURE() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::UnsupportedOnBackend);
    EXPECT_TRUE(contains(e.what(), "custom 'opaque'")) << e.what();
    EXPECT_TRUE(contains(e.what(), "registered op")) << e.what();
  }
}

TEST(Legalize, ParamsBecomeInputs) {
  const Graph g = mixed_graph();
  const PassResult r = promote_params_to_inputs(g, {"gamma", "nobody"});
  EXPECT_EQ(r.graph.size(), g.size());
  EXPECT_EQ(r.graph.params().size(), 1U);
  EXPECT_EQ(r.graph.inputs().size(), 2U);
  for (NodeId id = 0; id < g.size(); ++id) EXPECT_EQ(r.map({id, 0}), (ValueId{id, 0}));
  EXPECT_EQ(r.graph.node(r.graph.find_or_throw("gamma")).op.kind(), OpKind::Input);
}

}  // namespace
}  // namespace ricci::testing::rewrite_legalize_test
