// What fused ops expand to, and the forms their builders and aliases offer.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/compat/fused.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

#include "support/compare.h"

namespace ricci::testing::rule_fused_test {
namespace {

// A graph with inputs of the given types, and the expansion of an op on them.
Graph expansion_of(const Op& op, const std::vector<Type>& operands) {
  Graph from("fused");
  Graph to("expanded");
  std::vector<Value> before;
  std::vector<Value> after;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    before.push_back(from.input(fmt::format("x{}", k), operands[k]));
    after.push_back(to.input(fmt::format("x{}", k), operands[k]));
  }
  (void)from.add_node(op, before);
  std::vector<Value> outputs;
  for (const Value& v : expand_node(from.nodes().back(), after, to)) {
    if (v.valid()) outputs.push_back(v);
  }
  to.set_outputs(outputs);
  verify(to);
  return to;
}

template <OpStruct T>
std::ptrdiff_t count(const Graph& g) {
  return std::ranges::count_if(g.nodes(), [](const Node& n) { return n.op.as<T>() != nullptr; });
}

void expect_encoder_layer(const Graph& g) {
  EXPECT_EQ(count<op::FusedTransformerLayer>(g), 0);
  EXPECT_GE(count<op::Matmul>(g), 4);
  EXPECT_EQ(count<op::Attention>(g), 1);
  EXPECT_EQ(count<op::LayerNorm>(g), 2);
  EXPECT_GE(count<op::Narrow>(g), 3);
  EXPECT_EQ(count<op::Unary>(g), 1);
}

const op::FusedTransformerLayer Encoder{
    .num_heads = 2, .head_dim = 2, .intermediate_size = 8, .activation = UnaryKind::Gelu};
const Type Hidden = f32({1, 2, 4});
const Type QkvW = f32({4, 12});
const Type OutW = f32({4, 4});
const Type Fc1W = f32({4, 8});
const Type Fc2W = f32({8, 4});
const Type Vector = f32({4});
const Type Mask = f32({1, 2, 2, 2});

TEST(FusedTransformerLayer, WithBiasHasTheStepsOfAnEncoderLayer) {
  op::FusedTransformerLayer biased = Encoder;
  biased.has_bias = true;
  expect_encoder_layer(
      expansion_of(Op(biased), {Hidden, QkvW, f32({12}), OutW, Vector, Vector, Vector, Fc1W,
                                f32({8}), Fc2W, Vector, Vector, Vector, Mask}));
}

TEST(FusedTransformerLayer, WithoutBiasHasThemToo) {
  expect_encoder_layer(
      expansion_of(Op(Encoder), {Hidden, QkvW, OutW, Vector, Fc1W, Fc2W, Vector, Mask}));
}

TEST(FusedTransformerLayer, ExpandsWithUnknownSizes) {
  const Dim n = Dim::symbol("n");
  const Dim width = Dim::symbol("w");
  op::FusedTransformerLayer causal = Encoder;
  causal.mask_kind = MaskKind::causal();
  expect_encoder_layer(
      expansion_of(Op(causal), {f32({1, n, width}), f32({width, 12}), f32({4, width}), f32({width}),
                                f32({width, 8}), f32({8, width}), f32({width})}));
}

TEST(FusedAttentionBlock, RotatesQueriesAndKeysOnly) {
  const Graph g = expansion_of(
      Op(op::FusedAttentionBlock{
          .num_heads = 2, .head_dim = 2, .has_rope = true, .mask_kind = MaskKind::causal()}),
      {Hidden, QkvW, OutW, f32({2, 1}), f32({2, 1})});
  EXPECT_EQ(count<op::Rope>(g), 2);
  EXPECT_EQ(count<op::Attention>(g), 1);
  EXPECT_EQ(count<op::Matmul>(g), 2);
}

TEST(ResidualNormPair, GivesTheSumAndTheNormOfIt) {  // [residual-norm-two-outputs]
  for (const ResidualNorm kind : {ResidualNorm::Ln, ResidualNorm::Rms}) {
    Graph g("pair");
    const Value x = g.input("x", f64({2, 4}));
    const Value r = g.input("r", f64({2, 4}));
    const Value gamma = g.input("gamma", f64({4}));
    const Value beta = g.input("beta", f64({4}));
    const auto [total, normed] = residual_norm_pair(kind, {x, r, gamma, beta}, {.eps = 0.1});
    const Value expected = kind == ResidualNorm::Ln ? layer_norm(x + r, gamma, beta, {.eps = 0.1})
                                                    : rms_norm(x + r, gamma, beta, {.eps = 0.1});
    g.set_outputs({total, x + r, normed, expected});
    Feeds feeds;
    for (const NodeId in : g.inputs()) {
      const Node& node = g.node(in);
      feeds.emplace(node.op.as<op::Input>()->name, random_tensor(in + 1, node.types[0]));
    }
    const auto out = interpret(g, feeds);
    EXPECT_TRUE(close(out[0], out[1]));
    EXPECT_TRUE(close(out[2], out[3]));
  }
}

TEST(ResidualNormPair, IsAnAlias) {
  const Graph parsed =
      parse_graph("graph @g {\n"
                  "  %x = input \"x\" : f32[2, 4]\n"
                  "  %v = input \"v\" : f32[4]\n"
                  "  %sum, %normed = residual_norm_pair %x, %x, %v, %v {kind = rms, eps = 0.1}\n"
                  "  return %normed, %sum\n"
                  "}\n");
  Graph built("g");
  const Value x = built.input("x", f32({2, 4}));
  const Value v = built.input("v", f32({4}));
  const auto [total, normed] = residual_norm_pair(ResidualNorm::Rms, {x, x, v, v}, {.eps = 0.1});
  built.set_outputs({normed, total});
  EXPECT_EQ(parsed, built);
  EXPECT_THROW((void)parse_graph("graph @g {\n"
                                 "  %x = input \"x\" : f32[4]\n"
                                 "  %s, %n = residual_norm_pair %x, %x, %x, %x {kind = batch}\n"
                                 "  return %n\n"
                                 "}\n"),
               UserError);
}

}  // namespace
}  // namespace ricci::testing::rule_fused_test
