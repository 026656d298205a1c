#include "backend/cpu/structured/attention.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/compiler/rule/lower.h"

#include "backend/cpu/kernels/vector_kernels.h"
#include "support/compare.h"
#include "support/derivative.h"
#include "support/pools.h"

namespace ricci::testing::attention_test {
namespace {

struct Setting {
  std::string name;
  op::Attention op;
  Dims q;
  Dims k;
  std::optional<Tensor> mask = {};
};

void PrintTo(const Setting& s, std::ostream* out) { *out << s.name; }

// An operand of q's or k's form whose heads are as wide as those of values.
Dims with_width(Dims dims, const op::Attention& op) {
  dims.back() = dims.back().value() / op.head_dim * op.value_width();
  return dims;
}

std::vector<Setting> settings() {
  const auto bshd = AttentionLayout::Bshd;
  const auto bhsd = AttentionLayout::Bhsd;
  const auto heads = [](MaskKind kind) {
    return op::Attention{.num_heads = 2, .head_dim = 5, .mask_kind = kind};
  };
  const Tensor padding = Tensor::of<float>({2, 3}, {1, 0, 1, 0, 0, 0});
  std::vector<std::int64_t> few_keys;
  for (int i = 0; i < 2 * 70; ++i) few_keys.push_back(i < 70 ? i % 3 == 0 : i > 135);
  const Tensor long_padding = Tensor::from_numbers<std::int64_t>({DType::Bool, {2, 70}}, few_keys);
  return {
      {"plain", heads({}), {2, 3, 10}, {2, 5, 10}},
      {"rank_two", heads({}), {3, 10}, {3, 10}},
      {"one_of_each", {.num_heads = 1, .head_dim = 1}, {1, 1, 1}, {1, 1, 1}},
      {"no_queries", heads({}), {2, 0, 10}, {2, 5, 10}},
      {"no_keys", heads({}), {2, 3, 10}, {2, 0, 10}},
      {"no_batch", heads({}), {0, 3, 10}, {0, 4, 10}},
      {"several_blocks", heads({}), {1, 130, 10}, {1, 200, 10}},
      {"causal", heads(MaskKind::causal()), {1, 130, 10}, {1, 130, 10}},
      {"causal_with_past", heads(MaskKind::causal()), {2, 70, 10}, {2, 201, 10}},
      {"window", heads(MaskKind::sliding_window(9)), {1, 150, 10}, {1, 190, 10}},
      {"window_of_itself", heads(MaskKind::sliding_window(0)), {1, 80, 10}, {1, 80, 10}},
      {"fully_masked_rows", heads(MaskKind::custom()), {2, 3, 10}, {2, 3, 10}, padding},
      {"padded_keys", heads(MaskKind::custom()), {2, 66, 10}, {2, 70, 10}, long_padding},
      {"custom_of_rank_four",
       heads(MaskKind::custom()),
       {2, 3, 10},
       {2, 4, 10},
       random_tensor(8, f32({2, 1, 3, 4}), 0, 1)},
      {"bias",
       heads(MaskKind::bias()),
       {2, 66, 10},
       {2, 70, 10},
       random_tensor(9, f32({2, 2, 66, 70}))},
      {"bias_for_all_batches",
       heads(MaskKind::bias()),
       {2, 3, 10},
       {2, 4, 10},
       random_tensor(9, f32({1, 2, 1, 4}))},
      {"bias_for_all",
       heads(MaskKind::bias()),
       {2, 3, 10},
       {2, 4, 10},
       random_tensor(9, f32({1, 1, 3, 4}))},
      {"scaled", {.num_heads = 2, .head_dim = 5, .score_scale = 1.3}, {2, 3, 10}, {2, 3, 10}},
      {"capped",
       {.num_heads = 2,
        .head_dim = 5,
        .mask_kind = MaskKind::causal(),
        .score_scale = 0.7,
        .attn_logit_softcap = 0.8},
       {2, 70, 10},
       {2, 70, 10}},
      {"capped_bias",
       {.num_heads = 2, .head_dim = 5, .mask_kind = MaskKind::bias(), .attn_logit_softcap = 0.8},
       {2, 3, 10},
       {2, 3, 10},
       random_tensor(9, f32({1, 1, 3, 3}))},
      {"grouped_bshd",
       {.num_heads = 4, .head_dim = 16, .num_kv_heads = 2, .layout = bshd},
       {1, 67, 4, 16},
       {1, 65, 2, 16}},
      {"one_kv_head_bhsd",
       {.num_heads = 3,
        .head_dim = 33,
        .mask_kind = MaskKind::causal(),
        .num_kv_heads = 1,
        .layout = bhsd},
       {2, 3, 40, 33},
       {2, 1, 90, 33}},
      {"narrow_values", {.num_heads = 2, .head_dim = 24, .value_dim = 5}, {2, 70, 48}, {2, 97, 48}},
      {"wide_values_bshd",
       {.num_heads = 4,
        .head_dim = 3,
        .mask_kind = MaskKind::causal(),
        .num_kv_heads = 2,
        .layout = bshd,
        .value_dim = 37},
       {1, 67, 4, 3},
       {1, 69, 2, 3}},
      {"values_too_wide_for_the_stack",
       {.num_heads = 2, .head_dim = 64, .layout = bhsd, .value_dim = 300},
       {1, 2, 40, 64},
       {1, 2, 65, 64}},
      {"narrow_values_with_bias",
       {.num_heads = 2, .head_dim = 5, .mask_kind = MaskKind::bias(), .value_dim = 1},
       {2, 3, 10},
       {2, 4, 10},
       random_tensor(9, f32({1, 1, 3, 4}))},
  };
}

const float* floats(const Tensor& t) { return reinterpret_cast<const float*>(t.data()); }

// Results as tensors, the same bits from pools of every size.
template <class F>
std::vector<Tensor> with_all_pools(const std::vector<Type>& types, std::int64_t scratch_bytes,
                                   F&& run) {
  std::vector<float> space(static_cast<std::size_t>(scratch_bytes) / sizeof(float) + 16);
  std::vector<Tensor> first;
  for (ThreadPool& pool : pools()) {
    std::vector<Tensor> out;
    std::vector<float*> data;
    for (const Type& type : types) {
      out.push_back(Tensor::zeros(type));
      data.push_back(reinterpret_cast<float*>(out.back().mutable_data()));
      std::fill_n(data.back(), out.back().numel(), 77.0F);
    }
    run(pool, data, space.data());
    if (first.empty()) first = out;
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_TRUE(same(out[i], first[i])) << pool.threads() << " threads, result " << i;
    }
  }
  return first;
}

class BackendAttention : public ::testing::TestWithParam<Setting> {};

TEST_P(BackendAttention, AgreesWithTheReference) {
  const Setting& s = GetParam();
  constexpr Tolerance Close{2e-5, 4e-6};
  const Tensor q = random_tensor(1, f32(s.q));
  const Tensor k = random_tensor(2, f32(s.k));
  const Tensor v = random_tensor(3, f32(with_width(s.k, s.op)));
  const Tensor dy = random_tensor(4, f32(with_width(s.q, s.op)));
  std::vector<Tensor> operands = {q, k, v};
  if (s.mask) operands.push_back(*s.mask);
  const auto expected = run_op(Op(s.op), operands, {true, true});

  std::vector<Type> types_in;
  for (const Tensor& t : operands) types_in.push_back(t.type());
  const loop::Call call = call_of(Op(s.op), types_in, std::vector{expected[0].type()});
  const cpu::AttentionPlan plan(std::get<loop::Attention>(call),
                                s.mask ? s.mask->dtype() : DType::F32);
  const cpu::AttentionOperands in{floats(q), floats(k), floats(v),
                                  s.mask ? s.mask->data() : nullptr};
  const auto forward =
      with_all_pools({expected[0].type(), expected[1].type()}, plan.forward_scratch_bytes(),
                     [&](ThreadPool& pool, const std::vector<float*>& out, float* scratch) {
                       plan.forward(pool, in, out[0], out[1], scratch);
                     });
  EXPECT_TRUE(close(forward[0], expected[0], Close));
  EXPECT_TRUE(close(forward[1], expected[1], Close));

  const op::AttentionBackward derivative{
      .num_heads = s.op.num_heads,
      .head_dim = s.op.head_dim,
      .mask_kind = s.op.mask_kind,
      .score_scale = s.op.score_scale,
      .attn_logit_softcap = s.op.attn_logit_softcap,
      .num_kv_heads = s.op.num_kv_heads,
      .layout = s.op.layout,
      .value_dim = s.op.value_dim,
  };
  const bool bias = s.op.mask_kind.kind == MaskKind::Kind::Bias;
  operands.insert(operands.begin() + 3, dy);
  const auto gradients = run_op(Op(derivative), operands, std::vector<bool>(bias ? 4 : 3, true));
  std::vector<Type> types;
  for (const Tensor& g : gradients) types.push_back(g.type());
  for (const bool known : {false, true}) {
    const auto got = with_all_pools(
        types, plan.backward_scratch_bytes(),
        [&](ThreadPool& pool, const std::vector<float*>& out, float* scratch) {
          plan.backward(pool, in, floats(dy), {.lse = known ? floats(forward[1]) : nullptr},
                        {out[0], out[1], out[2], bias ? out[3] : nullptr}, scratch);
        });
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(close(got[i], gradients[i], Tolerance{5e-5, 1e-5})) << "gradient " << i << known;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, BackendAttention, ::testing::ValuesIn(settings()),
                         [](const auto& s) { return s.param.name; });

TEST(BackendVectorKernels, ExpIsWithinTwoUlp) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const cpu::VectorKernels* k : {&cpu::vector_base::kernels, &cpu::vector_kernels()}) {
    std::vector<float> x = {0.0F, -0.0F, inf, -inf, 88.72F, 88.73F, 1e30F, -1e30F, -87.4F, -103.9F};
    for (float v = -104.0F; v < 89.0F; v += 0.00137F) x.push_back(v);
    std::vector<float> y(x.size());
    k->exp(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      if (exact > 3.4028235677973366e38) {
        ASSERT_EQ(y[i], inf) << x[i];
        continue;
      }
      const float near = static_cast<float>(exact);
      const double ulp = static_cast<double>(std::nextafter(near, inf)) - static_cast<double>(near);
      ASSERT_LE(std::abs(static_cast<double>(y[i]) - exact), 2 * ulp) << k->name << ' ' << x[i];
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    float out = 0;
    k->exp(&nan, &out, 1);
    EXPECT_NE(out, out);
  }
}

}  // namespace
}  // namespace ricci::testing::attention_test
