// What masks and caps do to attention, on numbers that can be worked out by hand.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"

#include "support/compare.h"

namespace ricci::testing::rule_attention_masks_test {
namespace {

Tensor column(const std::vector<double>& values) {
  return Tensor::from_numbers<double>(f64({1, Dim(values.size()), 1}), values);
}

Tensor attend(const op::Attention& op, const std::vector<double>& q, const std::vector<double>& k,
              const std::vector<double>& v, const std::vector<double>& keep = {}) {
  Graph g("attend");
  std::vector<Value> in;
  Feeds feeds;
  const auto add = [&](const char* name, Tensor t) {
    in.push_back(g.input(name, t.type()));
    feeds.emplace(name, std::move(t));
  };
  add("q", column(q));
  add("k", column(k));
  add("v", column(v));
  if (keep.empty()) {
    g.set_outputs({attention(in[0], in[1], in[2], op)});
  } else {
    add("keep", Tensor::from_numbers<double>(f64({1, Dim(keep.size())}), keep));
    g.set_outputs({attention(in[0], in[1], in[2], in[3], op)});
  }
  return interpret(g, feeds)[0];
}

TEST(AttentionMasks, ACapLeaksNothingToMaskedKeys) {  // [AT-03]
  const op::Attention op{
      .num_heads = 1, .head_dim = 1, .mask_kind = MaskKind::causal(), .attn_logit_softcap = 0.5};
  EXPECT_EQ(attend(op, {1, 1}, {2, 9}, {3, 100}).numbers<double>()[0], 3);
}

TEST(AttentionMasks, ARowWithoutKeysIsZero) {  // [AT-05]
  const op::Attention op{.num_heads = 1, .head_dim = 1, .mask_kind = MaskKind::custom()};
  EXPECT_EQ(attend(op, {1}, {2, 9}, {3, 100}, {0, 0}).numbers<double>()[0], 0);
}

TEST(AttentionMasks, SmallProbabilitiesCount) {  // [AT-07]
  const op::Attention op{.num_heads = 1, .head_dim = 1};
  const double small = std::exp(-25.0);
  EXPECT_NEAR(attend(op, {1}, {0, -25}, {0, 1e11}).numbers<double>()[0], 1e11 * small / (1 + small),
              1e-9);
}

}  // namespace
}  // namespace ricci::testing::rule_attention_masks_test
