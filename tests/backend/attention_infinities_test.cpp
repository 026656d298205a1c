// A key with a weight of zero counts for nothing, whatever its value: infinities behind a mask do
// not become NaN, nor does NaN spread, in no dtype and by no way to compute attention.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "runtime/models.h"
#include "support/every_device.h"

namespace ricci::testing::attention_infinities_test {
namespace {

constexpr double Infinity = std::numeric_limits<double>::infinity();
constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t Width = 6;

Tensor with(const Tensor& t, std::size_t index, double value) {
  auto numbers = t.numbers<double>();
  numbers[index] = value;
  return Tensor::from_numbers<double>(t.type(), numbers);
}

struct Masked {
  Graph graph;
  Feeds feeds;
};

// The last of four keys is masked for the first three queries, or for all.
Masked attention_of(DType dtype, MaskKind kind) {
  Masked m{Graph("attention"), {}};
  const Type type{dtype, {1, 4, Width}};
  std::vector<Value> in;
  for (const char* name : {"q", "k", "v"}) in.push_back(m.graph.input(name, type));
  if (kind.kind == MaskKind::Kind::Custom) {
    in.push_back(m.graph.constant(Tensor::from_numbers<std::int64_t>(
        {DType::Bool, {1, 4}}, std::vector<std::int64_t>{1, 1, 1, 0})));
  }
  if (kind.kind == MaskKind::Kind::Bias) {
    in.push_back(m.graph.constant(Tensor::from_numbers<double>(
        {dtype, {1, 1, 1, 4}}, std::vector<double>{0.5, 0, 0.25, -Infinity})));
  }
  const op::Attention op{.num_heads = 2, .head_dim = Width / 2, .mask_kind = kind};
  const Value out = m.graph.add_node(Op(op), in)[0];
  m.graph.set_outputs({out});
  m.feeds = random_feeds(m.graph);
  return m;
}

void expect_agreement(const Graph& graph, const Feeds& feeds) {
  const auto expected = interpret(graph, feeds);
  for (const bool fuse : {false, true}) {
    const auto actual = compile(graph, Device::standard(), {.fuse = fuse}).run(feeds);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(actual[i], expected[i])) << "output " << i;
    }
  }
}

TEST(AttentionInfinities, BehindAMaskCountForNothing) {
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    for (const MaskKind& kind : {MaskKind::causal(), MaskKind::custom(), MaskKind::bias()}) {
      SCOPED_TRACE(std::string(name(dtype)));
      const Masked m = attention_of(dtype, kind);
      for (const char* which : {"k", "v"}) {
        SCOPED_TRACE(which);
        // A bias is added to the score, which no bias makes finite.
        if (which[0] == 'k' && kind.kind == MaskKind::Kind::Bias) continue;
        for (const double odd : {Infinity, NotANumber}) {
          Feeds feeds = m.feeds;
          feeds[which] = with(feeds.at(which), 3 * Width + 1, odd);
          expect_agreement(m.graph, feeds);
          expect_agreement(value_and_grad(m.graph, {"q", "k", "v"}).graph, feeds);
        }
      }
    }
  }
}

// The plan of the CPU multiplies weights of zero; what does not is named where it is reported.
TEST(AttentionInfinities, WhatServesThemIsReported) {
  if (!has_device("cpu")) GTEST_SKIP() << "this build has no CPU back end";
  const Device cpu = Device::cpu(1);
  const Masked m = attention_of(DType::F32, MaskKind::causal());
  const std::string attention = compile(m.graph, cpu).report();
  EXPECT_NE(attention.find("(where not finite: host call)"), std::string::npos) << attention;
  Graph g("conv");
  const Value x = g.input("x", f32({1, 2, 6, 6}));
  const Value w = g.input("w", f32({3, 2, 3, 3}));
  g.set_outputs({conv(x, w, {.stride = {1, 1}, .padding = {1, 1}}), matmul(x, x)});
  const std::string report = compile(g, cpu).report();
  EXPECT_NE(report.find("(where not finite: native)"), std::string::npos) << report;
  EXPECT_EQ(report.find("host call"), std::string::npos) << report;
}

// Rows that do not see the infinity, or the NaN, are numbers.
TEST(AttentionInfinities, StayWithTheRowsThatSeeThem) {
  for (const DType dtype : {DType::F32, DType::F64, DType::F16, DType::BF16}) {
    for (const double odd : {Infinity, NotANumber}) {
      const Masked m = attention_of(dtype, MaskKind::causal());
      Feeds feeds = m.feeds;
      feeds["v"] = with(feeds.at("v"), 3 * Width + 1, odd);
      const auto numbers = compile(m.graph).run(feeds)[0].numbers<double>();
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        EXPECT_EQ(std::isfinite(numbers[i]), i != 3 * Width + 1) << name(dtype) << " element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace ricci::testing::attention_infinities_test
