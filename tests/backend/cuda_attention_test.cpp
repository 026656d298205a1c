// Attention in tiles against the reference, on an emulated GPU whose fragments lie as the PTX
// manual says, in a process of its own, and on a real one where there is one: every mask, heads of
// many widths, grouped heads, lengths no tile divides, and keys that are infinite where nobody may
// see them.
#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "ricci/build/attention.h"
#include "ricci/build/build.h"
#include "ricci/build/shape.h"
#include "ricci/compat/attention.h"
#include "ricci/transform/grad.h"

#include "backend/cuda/load/nvrtc.h"
#include "backend/cuda/run/planned_program.h"
#include "backend/cuda/run/target.h"
#include "runtime/models.h"
#include "support/compare.h"
#include "support/cuda_run.h"
#include "support/emulated_gpu.h"

namespace ricci::testing::cuda_attention_test {
namespace {

struct Heads {
  const char* name = "";
  MaskKind mask = {};
  std::int64_t queries = 20;
  std::int64_t keys = 20;
  std::int64_t heads = 2;
  std::int64_t kv_heads = 2;
  std::int64_t width = 16;
  std::int64_t value_width = 16;
  std::optional<double> cap = {};
  bool of_one = false;  // q, k and v are parts of the rows of one array
};

const std::vector<Heads>& all_heads() {
  static const std::vector<Heads> all = {
      {.name = "plain"},
      {.name = "long", .queries = 70, .keys = 100, .width = 64, .value_width = 64},
      {.name = "narrow", .queries = 17, .keys = 33, .width = 5, .value_width = 3},
      {.name = "wide",
       .queries = 16,
       .keys = 40,
       .heads = 1,
       .kv_heads = 1,
       .width = 128,
       .value_width = 128},
      {.name = "odd_width", .width = 40, .value_width = 72},
      {.name = "grouped", .heads = 4, .kv_heads = 2, .width = 24, .value_width = 24},
      {.name = "causal",
       .mask = MaskKind::causal(),
       .queries = 70,
       .keys = 70,
       .width = 32,
       .value_width = 32},
      {.name = "causal_with_past", .mask = MaskKind::causal(), .queries = 20, .keys = 90},
      {.name = "window", .mask = MaskKind::sliding_window(9), .queries = 80, .keys = 100},
      {.name = "custom", .mask = MaskKind::custom(), .queries = 18, .keys = 70},
      {.name = "bias", .mask = MaskKind::bias(), .queries = 18, .keys = 35},
      {.name = "many_heads",  // enough for blocks of twice as many rows
       .mask = MaskKind::causal(),
       .queries = 70,
       .keys = 75,
       .heads = 68,
       .kv_heads = 34},
      {.name = "decoding", .queries = 1, .keys = 9},
      {.name = "decoding_grouped",  // queries of eight heads are rows of a block, keys are split
       .mask = MaskKind::causal(),
       .queries = 3,
       .keys = 700,
       .heads = 8,
       .kv_heads = 1,
       .width = 24,
       .value_width = 20},
      {.name = "capped", .queries = 18, .keys = 35, .cap = 2.0},
      {.name = "of_one_array",
       .mask = MaskKind::causal(),
       .queries = 70,
       .keys = 70,
       .heads = 4,
       .kv_heads = 2,
       .width = 24,
       .value_width = 24,
       .of_one = true},
      {.name = "of_one_array_narrow", .width = 5, .value_width = 3, .of_one = true},
  };
  return all;
}

// With `gradient` those of q, k, v, and of the bias where there is one.
Graph attention_graph(const Heads& h, DType dtype, bool gradient) {
  Graph g(h.name);
  const auto input = [&](const char* name, std::int64_t rows, std::int64_t width) {
    return g.input(name, Type(dtype, {2, rows, width}));
  };
  const std::int64_t widths[] = {h.heads * h.width, h.kv_heads * h.width,
                                 h.kv_heads * h.value_width};
  // One more than there must be, and nothing lies where 16 bytes begin.
  const std::int64_t before = h.width % 8 == 0 ? 0 : 1;
  const Value all =
      h.of_one ? input("qkv", h.keys, before + widths[0] + widths[1] + widths[2]) : Value{};
  const auto operand = [&](const char* name, std::int64_t rows, std::size_t which) {
    if (!h.of_one) return input(name, rows, widths[which]);
    std::int64_t start = before;
    for (std::size_t w = 0; w < which; ++w) start += widths[w];
    return narrow(all, {.axis = 2, .start = start, .len = widths[which]});
  };
  const Value q = operand("q", h.queries, 0);
  const Value k = operand("k", h.keys, 1);
  const Value v = operand("v", h.keys, 2);
  op::Attention attrs{.num_heads = h.heads, .head_dim = h.width, .mask_kind = h.mask};
  if (h.cap) attrs.attn_logit_softcap = Real(*h.cap);
  if (h.kv_heads != h.heads) attrs.num_kv_heads = h.kv_heads;
  Value mask;
  std::vector<ValueRef> wrt =
      h.of_one ? std::vector<ValueRef>{"qkv"} : std::vector<ValueRef>{"q", "k", "v"};
  if (h.mask.kind == MaskKind::Kind::Custom) mask = g.input("mask", Type(dtype, {2, h.keys}));
  if (h.mask.kind == MaskKind::Kind::Bias) {
    mask = g.input("bias", Type(dtype, {1, h.heads, h.queries, h.keys}));
    wrt.emplace_back("bias");
  }
  const Value y = attention_with_value_width(q, k, v, attrs, h.value_width, mask);
  if (!gradient) {
    g.set_outputs({y});
    return g;
  }
  const Value weights = g.input("weights", Type(dtype, {2, h.queries, h.heads * h.value_width}));
  const Value loss =
      reduce(cast(y * weights, {.to = DType::F32}), {.op = ReduceKind::Sum, .axes = {0, 1, 2}});
  g.set_outputs({loss});
  return grad(g, wrt).graph;
}

// Texts of all kernels that calls are served with.
std::vector<std::string> call_texts(const Graph& g) {
  const cuda::PlannedProgram planned(
      std::make_shared<const Program>(make_program(g, {.target = &cuda::target()})), {});
  std::vector<std::string> texts;
  for (const auto& step : planned.steps()) {
    if (!step.plan) continue;
    for (const cuda::PlannedLaunch& l : step.launches) texts.push_back(l.text.text);
  }
  return texts;
}

TEST(BackendCudaAttention, OfSmallFloatsGoesThroughTensorCores) {
  const Heads plain;
  // A gradient may have the forward pass before it.
  const auto uses_tensors = [&](DType dtype, bool gradient) {
    for (const std::string& text : call_texts(attention_graph(plain, dtype, gradient))) {
      const bool is_gradient = text.find("* __restrict__ dq") != std::string::npos;
      if (is_gradient == gradient && text.find("mma.sync") != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(uses_tensors(DType::BF16, false));
  EXPECT_TRUE(uses_tensors(DType::BF16, true));
  EXPECT_TRUE(uses_tensors(DType::F16, false));
  EXPECT_FALSE(uses_tensors(DType::F16, true));
  EXPECT_FALSE(uses_tensors(DType::F32, false));
}

// What the forward pass gave is known to its gradient, which needs no pass over the keys to find
// the mean of every query.
TEST(BackendCudaAttention, GradientsBeginWithWhatTheForwardPassGave) {
  const auto passes = [](const Graph& g) {
    std::size_t count = 0;
    for (const std::string& text : call_texts(g)) {
      count += text.find("mma.sync") != std::string::npos ? 1U : 0U;
    }
    return count;
  };
  const Graph both = attention_graph(Heads{}, DType::BF16, true);
  EXPECT_EQ(passes(both), 3U);  // forward, queries, keys
  Graph alone("alone");
  const Value x = alone.input("x", Type(DType::BF16, {2, 20, 32}));
  const auto d = attention_backward_all(x, x, x, x, 2, 16);
  alone.set_outputs({d[0], d[1], d[2]});
  EXPECT_EQ(passes(alone), 3U);  // statistics, queries, keys
}

// Parts of the rows of one array are read where they lie, and gradients put together in one.
TEST(BackendCudaAttention, PartsOfAnArrayAreNotCopied) {
  const auto& all = all_heads();
  const auto heads = std::ranges::find_if(all, [](const Heads& h) { return h.of_one; });
  const Program program =
      make_program(attention_graph(*heads, DType::BF16, true), {.target = &cuda::target()});
  for (const Step& step : program.steps) {
    EXPECT_EQ(step.label.find("concat"), std::string::npos) << to_string(program);
  }
  for (const DType dtype : {DType::BF16, DType::F32, DType::F64}) {
    for (const Heads& h : all_heads()) {
      if (!h.of_one) continue;
      EXPECT_EQ(call_texts(attention_graph(h, dtype, false)).size(), 1U) << h.name;
    }
  }
}

// With RICCI_ALL_CASES all of them; else the narrowest, the widest, and what is most to be done.
TEST(BackendCudaAttention, CompilesForEveryGpuThatHasThem) {
  if (!cuda::why_no_compiler().empty()) GTEST_SKIP() << cuda::why_no_compiler();
  const bool all = std::getenv("RICCI_ALL_CASES") != nullptr;
  for (const Heads& h : all_heads()) {
    const std::string_view name = h.name;
    if (!all && name != "narrow" && name != "wide" && name != "bias") continue;
    for (const bool gradient : {false, true}) {
      for (const std::string& text : call_texts(attention_graph(h, DType::BF16, gradient))) {
        for (const char* architecture : {"sm_80", "sm_90", "sm_90a"}) {
          if (!all && name != "wide" && architecture != std::string_view("sm_90")) continue;
          EXPECT_FALSE(cuda::compile_source(text, architecture).empty()) << h.name;
        }
      }
    }
  }
}

TEST(BackendCudaAttention, AgreesOnAnEmulatedGpu) {
  if (const std::string why = why_no_emulated_gpu(); !why.empty()) GTEST_SKIP() << why;
  // The gradients of many heads take long to emulate.
  const bool all = std::getenv("RICCI_ALL_CASES") != nullptr;
  const EmulatedRun run =
      run_with_emulated_gpu(all ? "*BackendEmulatedAttention*"
                                : "*BackendEmulatedAttention*-*HasTheGradients*/many_heads",
                            false);
  EXPECT_EQ(run.status, 0) << run.log;
  EXPECT_EQ(run.log.find("SKIPPED"), std::string::npos) << run.log;
  EXPECT_NE(run.log.find("KeysThatNobodySeesMayBeAnything"), std::string::npos) << run.log;
  // Older GPUs have products of single warps where newer ones have those of four.
  const EmulatedRun older = run_with_emulated_gpu(
      "*BackendEmulatedAttention*/long:*BackendEmulatedAttention*/wide", false, true);
  EXPECT_EQ(older.status, 0) << older.log;
}

class BackendEmulatedAttention : public ::testing::TestWithParam<Heads> {
 protected:
  void SetUp() override {
    if (emulated_folder() == nullptr && !why_no_cuda().empty()) {
      GTEST_SKIP() << "without a GPU run by BackendCudaAttention.AgreesOnAnEmulatedGpu";
    }
  }
};

void expect_as_the_reference(const Graph& g, const Feeds& feeds) {
  const std::vector<Tensor> actual = run_on_cuda(g, feeds);
  const std::vector<Tensor> expected = interpret(g, feeds);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(close(actual[i], expected[i])) << g.name() << ", output " << i;
  }
}

TEST_P(BackendEmulatedAttention, IsThatOfTheReference) {
  for (const DType dtype : {DType::BF16, DType::F32}) {
    const Graph g = attention_graph(GetParam(), dtype, false);
    expect_as_the_reference(g, random_feeds(g));
  }
}

TEST_P(BackendEmulatedAttention, HasTheGradientsOfTheReference) {
  for (const DType dtype : {DType::BF16, DType::F32}) {
    const Graph g = attention_graph(GetParam(), dtype, true);
    expect_as_the_reference(g, random_feeds(g));
  }
}

INSTANTIATE_TEST_SUITE_P(All, BackendEmulatedAttention, ::testing::ValuesIn(all_heads()),
                         [](const auto& heads) { return std::string(heads.param.name); });

class BackendEmulatedAttentionEdges : public BackendEmulatedAttention {};

TEST_P(BackendEmulatedAttentionEdges, AreThoseOfTheReferenceInF16) {
  for (const bool gradient : {false, true}) {
    const Graph g = attention_graph(GetParam(), DType::F16, gradient);
    expect_as_the_reference(g, random_feeds(g));
  }
}

// A weight of zero takes nothing of a value that is infinite, or none.
TEST_P(BackendEmulatedAttentionEdges, KeysThatNobodySeesMayBeAnything) {
  for (const auto& [dtype, gradient] : std::initializer_list<std::pair<DType, bool>>{
           {DType::BF16, false}, {DType::BF16, true}, {DType::F32, false}, {DType::F32, true}}) {
    const Graph g = attention_graph(GetParam(), dtype, gradient);
    Feeds feeds = random_feeds(g);
    for (const char* name : {"k", "v"}) {
      std::vector<double> values = feeds.at(name).numbers<double>();
      const std::size_t row = values.size() / 2 / static_cast<std::size_t>(GetParam().keys);
      for (std::size_t e = 0; e < row; ++e) {  // the last key of the first batch
        values[values.size() / 2 - 1 - e] = e % 2 == 0 ? std::numeric_limits<double>::infinity()
                                                       : std::numeric_limits<double>::quiet_NaN();
      }
      feeds.at(name) = Tensor::from_numbers<double>(feeds.at(name).type(), values);
    }
    expect_as_the_reference(g, feeds);
  }
}

INSTANTIATE_TEST_SUITE_P(
    BackendEmulatedAttention, BackendEmulatedAttentionEdges,
    ::testing::Values(Heads{
        .name = "causal", .mask = MaskKind::causal(), .queries = 34, .keys = 34}),
    [](const auto& heads) { return std::string(heads.param.name); });

}  // namespace
}  // namespace ricci::testing::cuda_attention_test
