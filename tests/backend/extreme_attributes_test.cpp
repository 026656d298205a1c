// Attributes at the ends of their ranges: the CPU computes what the reference does.
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/attention.h"
#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"

#include "backend/agreement.h"
#include "support/compare.h"

namespace ricci::testing::extreme_attributes_test {
namespace {

constexpr std::int64_t Most = std::numeric_limits<std::int32_t>::max();

std::string differs(const Graph& g, const Feeds& feeds) {
  const Outcome expected = reference_outcome(g, feeds);
  EXPECT_TRUE(std::holds_alternative<std::vector<Tensor>>(expected));
  return device_disagreement(g, feeds, compiled_outcome(g, feeds, true), expected);
}

std::string refusal(const std::function<void()>& build) {
  try {
    build();
  } catch (const UserError& e) {
    return e.diagnostic().detail;
  }
  return {};
}

struct Windows {
  HeightWidth kernel;
  HeightWidth stride;
  HeightWidth padding;
};

// Steps past the image and kernels that are mostly padding.
TEST(BackendExtremeAttributes, Pooling) {
  const std::vector<Windows> all = {
      {{2, 2}, {Most, Most}, {1, 1}},
      {{Most, Most}, {Most, Most}, {Most - 1, Most - 1}},
      {{Most, 2}, {Most, 1}, {Most / 2, 1}},
      {{3, Most}, {2, Most}, {1, Most / 2}},
  };
  for (const Windows& w : all) {
    for (const ReduceKind kind :
         {ReduceKind::Max, ReduceKind::Min, ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Prod}) {
      for (const bool count_padding : {false, true}) {
        Graph g("pool");
        const Value x = g.input("x", f32({2, 3, 5, 7}));
        g.set_outputs({pool(x, {.kind = kind,
                                .kernel_size = w.kernel,
                                .stride = w.stride,
                                .padding = w.padding,
                                .count_include_pad = count_padding})});
        EXPECT_EQ(differs(g, {{"x", random_tensor(1, f32({2, 3, 5, 7}))}}), "") << name_of(kind);
      }
    }
    Graph g("backward");
    const Value x = g.input("x", f32({2, 3, 5, 7}));
    const op::MaxPool2dBackward op{
        .kernel_size = w.kernel, .stride = w.stride, .padding = w.padding};
    const Value y = pool(x, {.kind = ReduceKind::Max,
                             .kernel_size = w.kernel,
                             .stride = w.stride,
                             .padding = w.padding});
    g.set_outputs(
        {max_pool2d_backward(x, sin(y), op),
         max_pool2d_select(x, cos(x),
                           {.kernel_size = w.kernel, .stride = w.stride, .padding = w.padding})});
    EXPECT_EQ(differs(g, {{"x", random_tensor(1, f32({2, 3, 5, 7}))}}), "");
  }
}

// What overflowed is no longer said.
TEST(BackendExtremeAttributes, StridesBeyondTheRangeAreRefused) {
  constexpr std::int64_t Largest = std::numeric_limits<std::int64_t>::max();
  Graph g("pool");
  const Value x = g.input("x", f32({1, 1, 4, 4}));
  const Value dy = g.input("dy", f32({1, 1, 1, 1}));
  EXPECT_EQ(refusal([&] {
              (void)max_pool2d_backward(
                  x, dy, {.kernel_size = {2, 2}, .stride = {Largest, Largest}, .padding = {1, 1}});
            }),
            "max_pool2d_backward_range");
  EXPECT_EQ(refusal([&] {
              (void)pool(x,
                         {.kind = ReduceKind::Max, .kernel_size = {2, 2}, .stride = {Largest, 1}});
            }),
            "pool_range");
}

TEST(BackendExtremeAttributes, Convolutions) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
    Graph g("conv");
    const Type image{dtype, {1, 2, 5, 6}};
    const Type kernel{dtype, {3, 2, 1, 2}};
    const Value x = g.input("x", image);
    const Value w = g.input("w", kernel);
    const op::Conv op{.stride = {Most, Most}, .padding = {0, Most}, .dilation = {Most, 4}};
    const Value y = conv(x, w, op);
    g.set_outputs({y,
                   conv2d_backward_input(y, w,
                                         {.input_size = {5, 6},
                                          .stride = op.stride,
                                          .padding = op.padding,
                                          .dilation = op.dilation}),
                   conv2d_backward_weight(x, y,
                                          {.kernel_size = {1, 2},
                                           .stride = op.stride,
                                           .padding = op.padding,
                                           .dilation = op.dilation})});
    EXPECT_EQ(differs(g, {{"x", random_tensor(1, image)}, {"w", random_tensor(2, kernel)}}), "")
        << name(dtype);
  }
}

Graph attend(const op::Attention& op) {
  Graph g("attend");
  const Value q = g.input("q", f32({1, 9, 8}));
  const Value k = g.input("k", f32({1, 9, 8}));
  const Value v = g.input("v", f32({1, 9, 8}));
  const Value dy = g.input("dy", f32({1, 9, 8}));
  const AttentionWithLse forward = attention_with_lse(q, k, v, op);
  const auto d = g.add_node(
      Op(op::AttentionBackward{op.num_heads, op.head_dim, op.mask_kind, op.score_scale,
                               op.attn_logit_softcap, op.num_kv_heads, op.layout, op.value_dim}),
      std::array{q, k, v, dy});
  g.set_outputs({forward.out, forward.lse, d[0], d[1], d[2]});
  return g;
}

Feeds attended() {
  Feeds feeds;
  for (const char* name : {"q", "k", "v", "dy"}) {
    feeds.emplace(name, random_tensor(feeds.size() + 1, f32({1, 9, 8})));
  }
  return feeds;
}

TEST(BackendExtremeAttributes, AttentionWindows) {
  op::Attention op{.num_heads = 2, .head_dim = 4, .mask_kind = MaskKind::causal()};
  const std::vector<Tensor> causal = interpret(attend(op), attended());
  for (const std::int64_t window : {LargestSize, LargestSize - 1, std::int64_t{8}}) {
    op.mask_kind = MaskKind::sliding_window(window);
    const Graph g = attend(op);
    EXPECT_EQ(differs(g, attended()), "") << window;
    const std::vector<Tensor> sliding = interpret(g, attended());
    for (std::size_t i = 0; i < causal.size(); ++i) EXPECT_TRUE(same(sliding[i], causal[i]));
  }
  op.mask_kind = MaskKind::sliding_window(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(refusal([&] { (void)attend(op); }), "attention_range");
}

TEST(BackendExtremeAttributes, AttentionFactors) {
  for (const double cap : {0x1p64, 1e18, 1e10, 1e5, 50.0, 1.0, 1e-3, 1e-10, 0x1p-64}) {
    const op::Attention op{.num_heads = 2, .head_dim = 4, .attn_logit_softcap = Real(cap)};
    EXPECT_EQ(differs(attend(op), attended()), "") << "cap " << cap;
  }
  for (const double scale : {0x1p64, -1e18, 1e10, 1e4, 0.0, 1e-10, 0x1p-64}) {
    const op::Attention op{.num_heads = 2, .head_dim = 4, .score_scale = Real(scale)};
    EXPECT_EQ(differs(attend(op), attended()), "") << "scale " << scale;
  }
  // A cap far above all scores is none.
  const op::Attention plain{.num_heads = 2, .head_dim = 4};
  op::Attention capped = plain;
  capped.attn_logit_softcap = Real(1e12);
  const Outcome with = compiled_outcome(attend(capped), attended(), true);
  const std::vector<Tensor> without = interpret(attend(plain), attended());
  for (std::size_t i = 0; i < without.size(); ++i) {
    EXPECT_TRUE(close(std::get<std::vector<Tensor>>(with)[i], without[i])) << i;
  }
}

TEST(BackendExtremeAttributes, AttentionFactorsOutOfRangeAreRefused) {
  constexpr double Inf = std::numeric_limits<double>::infinity();
  for (const double bad : {1e300, 1e-300, 5e-324, Inf, std::nan(""), 1e30, 1e-30}) {
    op::Attention op{.num_heads = 2, .head_dim = 4, .score_scale = Real(bad)};
    EXPECT_EQ(refusal([&] { (void)attend(op); }), "attention_range") << bad;
    op = {.num_heads = 2, .head_dim = 4, .attn_logit_softcap = Real(bad)};
    EXPECT_EQ(refusal([&] { (void)attend(op); }), "attention_range") << bad;
  }
  for (const double bad : {0.0, -0.0, -1.0}) {
    const op::Attention op{.num_heads = 2, .head_dim = 4, .attn_logit_softcap = Real(bad)};
    EXPECT_EQ(refusal([&] { (void)attend(op); }), "attention_c10") << bad;
  }
}

// Rows of equal numbers have no variance: eps alone is under the root.
TEST(BackendExtremeAttributes, EpsOfNorms) {
  for (const double eps : {0.0, 1.2e-38, 1e-30, 1e-5, 1e30, 3e38}) {
    Graph g("norm");
    const Value x = g.input("x", f32({3, 4}));
    const Value v = g.input("v", f32({4}));
    g.set_outputs({layer_norm(x, v, v, {.eps = eps}), rms_norm(x, v, v, {.eps = eps})});
    Tensor rows = random_tensor(1, f32({3, 4}));
    EXPECT_EQ(differs(g, {{"x", rows}, {"v", random_tensor(2, f32({4}))}}), "") << eps;
    rows = Tensor::splat(f32({3, 4}), 0.5);
    EXPECT_EQ(differs(g, {{"x", rows}, {"v", random_tensor(2, f32({4}))}}), "") << eps;
  }
}

}  // namespace
}  // namespace ricci::testing::extreme_attributes_test
