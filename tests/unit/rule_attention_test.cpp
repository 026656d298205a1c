// Derivatives of attention and rope against central differences, and their hand-written builders.
#include <gtest/gtest.h>

#include "ricci/build/attention.h"
#include "ricci/build/build.h"
#include "ricci/compat/attention.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

#include "support/compare.h"
#include "support/derivative.h"

namespace ricci::testing::rule_attention_test {
namespace {

constexpr Tolerance Close{1e-6, 1e-8};

Tensor numbers(std::uint64_t seed, Dims dims) { return random_tensor(seed, f64(std::move(dims))); }

struct AttentionSetting {
  std::string name;
  op::Attention op;
  Dims q;
  Dims k;
  std::optional<Tensor> mask = {};
};

void PrintTo(const AttentionSetting& s, std::ostream* out) { *out << s.name; }

std::vector<AttentionSetting> attention_settings() {
  const auto bshd = AttentionLayout::Bshd;
  const auto bhsd = AttentionLayout::Bhsd;
  const op::Attention heads{.num_heads = 2, .head_dim = 2};
  const auto with_mask = [&](MaskKind kind) {
    op::Attention a = heads;
    a.mask_kind = kind;
    return a;
  };
  const Tensor padding = Tensor::of<float>({2, 3}, {1, 0, 1, 0, 0, 0});
  return {
      {"plain", heads, {2, 3, 4}, {2, 5, 4}},
      {"rank_two", heads, {3, 4}, {3, 4}},
      {"causal", with_mask(MaskKind::causal()), {1, 3, 4}, {1, 5, 4}},
      {"window", with_mask(MaskKind::sliding_window(1)), {1, 4, 4}, {1, 4, 4}},
      {"fully_masked_row", with_mask(MaskKind::custom()), {2, 3, 4}, {2, 3, 4}, padding},
      {"bias", with_mask(MaskKind::bias()), {2, 3, 4}, {2, 4, 4}, numbers(9, {2, 2, 3, 4})},
      {"bias_repeated",
       with_mask(MaskKind::bias()),
       {2, 3, 4},
       {2, 4, 4},
       numbers(9, {1, 2, 1, 4})},
      {"scaled", {.num_heads = 2, .head_dim = 2, .score_scale = 1.3}, {2, 3, 4}, {2, 3, 4}},
      {"capped",
       {.num_heads = 2,
        .head_dim = 2,
        .mask_kind = MaskKind::causal(),
        .score_scale = 0.7,
        .attn_logit_softcap = 0.8},
       {2, 3, 4},
       {2, 3, 4}},
      {"capped_bias",
       {.num_heads = 2, .head_dim = 2, .mask_kind = MaskKind::bias(), .attn_logit_softcap = 0.8},
       {2, 3, 4},
       {2, 3, 4},
       numbers(9, {1, 1, 3, 3})},
      {"grouped_bshd",
       {.num_heads = 4, .head_dim = 2, .num_kv_heads = 2, .layout = bshd},
       {1, 3, 4, 2},
       {1, 5, 2, 2}},
      {"one_kv_head_bhsd",
       {.num_heads = 3, .head_dim = 2, .num_kv_heads = 1, .layout = bhsd},
       {2, 3, 3, 2},
       {2, 1, 4, 2}},
  };
}

class AttentionGradient : public ::testing::TestWithParam<AttentionSetting> {};

// [AT-01] [AT-04] [AT-10] [attention-grad-attrs]
TEST_P(AttentionGradient, AgreesWithDifferences) {
  const AttentionSetting& s = GetParam();
  std::vector<Tensor> forward = {numbers(1, s.q), numbers(2, s.k), numbers(3, s.k)};
  const Tensor dy = numbers(4, s.q);
  std::vector<Tensor> backward = {forward[0], forward[1], forward[2], dy};
  if (s.mask) {
    forward.push_back(*s.mask);
    backward.push_back(*s.mask);
  }
  const op::AttentionBackward derivative{
      .num_heads = s.op.num_heads,
      .head_dim = s.op.head_dim,
      .mask_kind = s.op.mask_kind,
      .score_scale = s.op.score_scale,
      .attn_logit_softcap = s.op.attn_logit_softcap,
      .num_kv_heads = s.op.num_kv_heads,
      .layout = s.op.layout,
  };
  const bool bias = s.op.mask_kind.kind == MaskKind::Kind::Bias;
  const std::vector<bool> wanted(bias ? 4 : 3, true);
  const auto gradients = run_op(Op(derivative), backward, wanted);
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    EXPECT_TRUE(close(gradients[k],
                      central_difference(Op(s.op), forward, {true, false}, std::array{dy}, k),
                      Close))
        << "operand " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, AttentionGradient, ::testing::ValuesIn(attention_settings()),
                         [](const auto& s) { return s.param.name; });

TEST(AttentionBuilders, GiveOneGradientAndAll) {  // [BW-08]
  Graph g("builders");
  const Value q = g.input("q", f32({2, 3, 4}));
  const Value k = g.input("k", f32({2, 5, 4}));
  const Value v = g.input("v", f32({2, 5, 4}));
  const Value dy = g.input("dy", f32({2, 3, 4}));
  const Value bias = g.input("bias", f32({1, 2, 3, 5}));
  const Value dk = attention_backward_wrt(AttentionWrt::Key, q, k, v, dy, 2, 2);
  EXPECT_EQ(dk.type(), k.type());
  EXPECT_EQ(g.node(dk.id().node).wanted, (std::vector{false, true, false}));
  const Value dbias =
      attention_backward_wrt(AttentionWrt::Bias, q, k, v, dy, 2, 2, MaskKind::bias(), bias);
  EXPECT_EQ(dbias.type(), bias.type());
  const auto [dq, dk2, dv] = attention_backward_all(q, k, v, dy, 2, 2, MaskKind::bias(), bias);
  EXPECT_EQ(g.node(dq.id().node).wanted, (std::vector{true, true, true, false}));
  const auto [out, lse] = attention_with_lse(q, k, v, {.num_heads = 2, .head_dim = 2});
  EXPECT_EQ(lse.type(), f32({2, 2, 3}));
  g.set_outputs({dk, dbias, dq, dk2, dv, out, lse});
  verify(g);
  EXPECT_THROW(attention_backward_wrt(AttentionWrt::Bias, q, k, v, dy, 2, 2), UserError);
}

TEST(AttentionBuilders, AreSpellingsTheParserAccepts) {
  Graph g("main");
  std::vector<Value> in;
  for (const char* n : {"q", "k", "v", "dy"}) in.push_back(g.input(n, f32({3, 4})));
  const auto d = attention_backward_all(in[0], in[1], in[2], in[3], 2, 2);
  g.set_outputs({d[0], d[1], d[2]});
  // The printed form uses the op's own name; the alias stands for the same op.
  std::string printed = print(g);
  const std::string_view own = "attention_backward";
  const std::size_t at = printed.find(own);
  ASSERT_NE(at, std::string::npos) << printed;
  printed.replace(at, own.size(), "attention_backward_all");
  EXPECT_TRUE(parse_graph(printed) == g) << printed;
}

TEST(AttentionBuilders, ParseOneGradient) {
  const Graph g = parse_graph(R"(graph @main {
    %q = input "q" : f32[3, 4]
    %dk = attention_backward_wrt %q, %q, %q, %q {wrt = key, num_heads = 2, head_dim = 2}
    return %dk
  })");
  EXPECT_EQ(g.nodes().back().wanted, (std::vector{false, true, false}));
}

struct RopeSetting {
  std::string name;
  op::Rope op;
  Dims x;
  std::int64_t rows;
};

class RopeGradient : public ::testing::TestWithParam<RopeSetting> {};

// [AT-13] [BW-04]
TEST_P(RopeGradient, AgreesWithDifferences) {
  const RopeSetting& s = GetParam();
  const Dims table = {s.rows, s.op.head_dim / 2};
  const std::vector<Tensor> forward = {numbers(1, s.x), numbers(2, table), numbers(3, table)};
  const Tensor dy = numbers(4, s.x);
  const op::RopeBackward derivative{s.op.head_dim, s.op.n_rot, s.op.style};
  const auto gradients = run_op(Op(derivative), std::array{dy, forward[1], forward[2], forward[0]},
                                {true, true, true});
  ASSERT_EQ(gradients.size(), 3U);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(
        close(gradients[k], central_difference(Op(s.op), forward, {}, std::array{dy}, k), Close))
        << "operand " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, RopeGradient,
    ::testing::Values(RopeSetting{"neox", {.head_dim = 4}, {2, 3, 8}, 3},
                      RopeSetting{"neox_part", {.head_dim = 6, .n_rot = 4}, {2, 3, 12}, 5},
                      RopeSetting{"gptj", {.head_dim = 4, .style = RopeStyle::Gptj}, {3, 8}, 4},
                      RopeSetting{"gptj_part",
                                  {.head_dim = 6, .n_rot = 2, .style = RopeStyle::Gptj},
                                  {2, 3, 2, 6},
                                  3}),
    [](const auto& s) { return s.param.name; });

TEST(RopeBackward, HasNoTableGradientsWithoutX) {
  Graph g("tables");
  const Value dy = g.input("dy", f32({3, 4}));
  const Value table = g.input("table", f32({3, 2}));
  const Value dx = rope_backward(dy, table, table, {.head_dim = 4});
  EXPECT_EQ(g.node(dx.id().node).types.size(), 1U);
  const Value with_x = rope_backward(dy, table, table, dy, {.head_dim = 4});
  EXPECT_EQ(g.node(with_x.id().node).types.size(), 3U);
  EXPECT_EQ(g.node(with_x.id().node).wanted, (std::vector{true, false, false}));
}

TEST(Rope, HoldsAFullRotationAsAbsent) {
  Graph g("whole");
  const Value x = g.input("x", f32({3, 4}));
  const Value table = g.input("table", f32({3, 2}));
  const Value y = rope(x, table, table, {.head_dim = 4, .n_rot = 4});
  EXPECT_FALSE(g.node(y.id().node).op.as<op::Rope>()->n_rot.has_value());
}

// Masks that follow from positions do not need to know how many there are.
TEST(AttentionExpansion, TakesSymbolicLengths) {
  for (const MaskKind kind : {MaskKind::causal(), MaskKind::sliding_window(1)}) {
    Graph g("attention");
    Graph parts("parts");
    const auto operands = [](Graph& to) {
      return std::vector{to.input("q", f64({2, "s", 4})), to.input("k", f64({2, "t", 4})),
                         to.input("v", f64({2, "t", 4}))};
    };
    const op::Attention op{.num_heads = 2, .head_dim = 2, .mask_kind = kind};
    const auto whole = operands(g);
    const Value y = attention(whole[0], whole[1], whole[2], op);
    g.set_outputs({y});
    parts.set_outputs({expand_node(g.node(y.id().node), operands(parts), parts)[0]});
    const Feeds feeds{
        {"q", numbers(1, {2, 3, 4})}, {"k", numbers(2, {2, 5, 4})}, {"v", numbers(3, {2, 5, 4})}};
    EXPECT_TRUE(close(interpret(parts, feeds)[0], interpret(g, feeds)[0], {1e-12, 1e-12}));
  }
}

}  // namespace
}  // namespace ricci::testing::rule_attention_test
