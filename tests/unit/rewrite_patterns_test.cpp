// Patterns of several nodes that become one: which do, which must not, and what is said of those
// that do not.
#include <algorithm>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/image.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/compiler/rewrite/mark_regions.h"
#include "ricci/compiler/rewrite/pattern_report.h"
#include "ricci/compiler/rewrite/unfuse.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/ops.h"

#include "support/compare.h"

namespace ricci::testing::rewrite_patterns_test {
namespace {

std::size_t count(const Graph& graph, std::string_view mnemonic) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [&](const Node& node) { return node.op.mnemonic() == mnemonic; }));
}

Feeds feeds_for(const Graph& graph) {
  Feeds feeds;
  for (const NodeId id : graph.leaves()) {
    feeds.emplace(*graph.node(id).leaf_name(), random_tensor(id + 1, graph.node(id).types[0]));
  }
  return feeds;
}

using PatternPass = PassResult (*)(const Graph&);

// What a pass makes, without what is dead: the same leaves, the same values, a map to the outputs.
Graph tidied(const Graph& graph, const PassResult& made) {
  verify(made.graph);
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    EXPECT_EQ(made.map(graph.outputs()[i]), made.graph.outputs()[i]);
  }
  const Graph out = dead_code_elimination(made.graph).graph;
  const Feeds feeds = feeds_for(graph);
  const std::vector<Tensor> expected = interpret(graph, feeds);
  const std::vector<Tensor> got = interpret(out, feeds);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(got[i], expected[i])) << i;
  EXPECT_EQ(graph.leaves().size(), out.leaves().size());
  for (std::size_t k = 0; k < std::min(graph.leaves().size(), out.leaves().size()); ++k) {
    EXPECT_EQ(*graph.node(graph.leaves()[k]).leaf_name(), *out.node(out.leaves()[k]).leaf_name());
  }
  return out;
}
Graph fused(const Graph& graph, PatternPass pass) { return tidied(graph, pass(graph)); }

struct Layer {
  Graph g{"layer"};
  Value x = g.input("x", f64({4, 3}));
  Value w = g.param("w", f64({3, 5}));
  Value product = matmul(x, w);
  Value bias = g.param("b", f64({5}));  // declared behind the product

  Graph done(std::initializer_list<Value> outputs) {
    g.set_outputs(std::vector<Value>(outputs));
    return g;
  }
};

TEST(RewritePatterns, ALayerTakesBiasAndFunction) {
  for (const UnaryKind kind : {UnaryKind::Gelu, UnaryKind::Silu, UnaryKind::Tanh}) {
    Layer l;
    const Graph out = fused(l.done({activation(kind, l.bias + l.product)}), fuse_matmul_bias_act);
    EXPECT_EQ(count(out, "fused_matmul_bias_act"), 1U);
    EXPECT_EQ(out.size(), 4U) << print(out);
  }
  Layer alone;
  EXPECT_EQ(count(fused(alone.done({alone.product + alone.bias}), fuse_matmul_bias_act), "add"),
            0U);
}

// [fusion-guards]
TEST(RewritePatterns, ALayerIsLeftWhereTheSumIsAnother) {
  const auto left = [](const Graph& graph) { return !fuse_matmul_bias_act(graph).changed; };
  Layer twice;
  EXPECT_TRUE(left(twice.done({twice.product + twice.bias, twice.product})));
  Layer rank;
  EXPECT_TRUE(left(rank.done({rank.product + rank.g.param("c", f64({1, 5}))})));
  Layer scalar;
  EXPECT_TRUE(left(scalar.done({scalar.product + scalar.g.param("c", f64({}))})));
  Graph wide("wide");
  const Value column = matmul(wide.input("x", f64({4, 3})), wide.param("w", f64({3, 1})));
  wide.set_outputs({column + wide.param("b", f64({5}))});
  EXPECT_TRUE(left(wide));
  Graph whole("ints");
  const Value ints = matmul(whole.input("x", i32({4, 3})), whole.param("w", i32({3, 5})));
  whole.set_outputs({ints + whole.param("b", i32({5}))});
  EXPECT_TRUE(left(whole));

  Layer seen;  // the sum is an output: the function stays apart
  const Value sum = seen.product + seen.bias;
  const Graph out = fused(seen.done({tanh(sum), sum}), fuse_matmul_bias_act);
  EXPECT_EQ(count(out, "fused_matmul_bias_act"), 1U);
  EXPECT_EQ(count(out, "tanh"), 1U);
}

template <class Norm>
Graph residual_graph(Norm norm, bool bias, bool again, bool early = true) {
  Graph g("residual");
  const Value x = g.input("x", f64({2, 3, 4}));
  const Value r = g.input("r", f64({2, 3, 4}));
  Value sum = x + r;
  if (bias) sum = g.param("bias", f64({4})) + sum;
  Value gamma = g.param("gamma", f64({4}));
  if (!early) gamma = tanh(gamma);
  const Value y = norm(sum, gamma, g.param("beta", f64({4})));
  g.set_outputs(again ? std::vector{y, sum * 2.0} : std::vector{y});
  return g;
}

TEST(RewritePatterns, ResidualSumsAndTheirNorms) {
  const auto ln = [](Value x, Value g, Value b) { return layer_norm(x, g, b, {.eps = 0.1}); };
  const auto rms = [](Value x, Value g, Value b) { return rms_norm(x, g, b, {.eps = 0.1}); };
  for (const bool bias : {false, true}) {
    for (const bool again : {false, true}) {
      const Graph a = fused(residual_graph(ln, bias, again), fuse_residual_ln);
      EXPECT_EQ(count(a, "fused_residual_ln"), 1U) << print(a);
      EXPECT_EQ(count(a, "add"), 0U) << print(a);
      const Graph b = fused(residual_graph(rms, bias, again), fuse_residual_rms_norm);
      EXPECT_EQ(count(b, "fused_residual_rms_norm"), 1U) << print(b);
      EXPECT_EQ(count(b, "add"), 0U) << print(b);
    }
  }
  EXPECT_FALSE(fuse_residual_ln(residual_graph(rms, false, false)).changed);
  // Its factor is made behind the sum, which another node reads before.
  EXPECT_FALSE(fuse_residual_rms_norm(residual_graph(rms, false, true, false)).changed);
  EXPECT_TRUE(fuse_residual_rms_norm(residual_graph(rms, false, false, false)).changed);
}

// [fusion-guards] The sum broadcasts, or the norm is along another axis.
TEST(RewritePatterns, ResidualSumsThatAreNoneAreLeft) {
  Graph g("broadcast");
  const Value sum = g.input("x", f64({2, 4})) + g.input("r", f64({1, 4}));
  g.set_outputs({rms_norm(sum, g.param("gamma", f64({4})), g.param("beta", f64({4})))});
  EXPECT_FALSE(fuse_residual_rms_norm(g).changed);
  Graph h("axis");
  const Value other = h.input("x", f64({2, 4})) + h.input("r", f64({2, 4}));
  h.set_outputs(
      {rms_norm(other, h.param("gamma", f64({2})), h.param("beta", f64({2})), {.axis = 0})});
  EXPECT_FALSE(fuse_residual_rms_norm(h).changed);
}

TEST(RewritePatterns, NormsMoveBehindReshapesThatJoinRows) {
  const auto graph = [](Dims shape, bool output) {
    Graph g("norm");
    const Value n = rms_norm(g.input("x", f64({2, 3, 4})), g.param("gamma", f64({4})),
                             g.param("beta", f64({4})));
    const Value y = reshape(n, {.new_shape = std::move(shape)});
    g.set_outputs({output ? y : tanh(y)});
    return g;
  };
  const Graph out = fused(graph({6, 4}, false), fuse_rms_norm_reshape);
  const auto norm = std::ranges::find_if(
      out.nodes(), [](const Node& node) { return node.op.template is<op::RmsNorm>(); });
  ASSERT_NE(norm, out.nodes().end());
  EXPECT_EQ(norm->types[0].dims, (Dims{6, 4}));
  EXPECT_FALSE(fuse_rms_norm_reshape(graph({2, 12}, false)).changed);
  EXPECT_FALSE(fuse_rms_norm_reshape(graph({6, 4}, true)).changed);
}

TEST(RewritePatterns, GatesBesideWhatTheyGate) {
  for (const bool gate_left : {false, true}) {
    Graph g("gated");
    const Value x = g.input("x", f64({2, 3}));
    const Value up = matmul(x, g.param("u", f64({3, 4})));
    const Value gate = silu(matmul(x, g.param("g", f64({3, 4}))));
    g.set_outputs({gate_left ? gate * up : up * gate});
    const Graph out = fused(g, fuse_swiglu_dual_matmul);
    EXPECT_EQ(count(out, "matmul"), 1U) << print(out);
    EXPECT_EQ(count(out, "fused_swiglu"), 1U);
  }
  for (const bool gate_first : {false, true}) {
    Graph g("halves");
    const Value x = g.input("x", f64({2, 8}));
    const Value low = narrow(x, {.axis = -1, .start = 0, .len = 4});
    const Value high = narrow(x, {.axis = -1, .start = 4, .len = 4});
    g.set_outputs({gate_first ? silu(low) * high : low * silu(high)});
    const Graph out = fused(g, fuse_swiglu);
    EXPECT_EQ(out.size(), 2U) << print(out);
    EXPECT_EQ(out.nodes()[1].op.as<op::FusedSwiglu>()->gate_first, gate_first);
  }
  Graph thirds("thirds");  // [fusion-guards]: not halves, not the last axis, not one value
  const Value x = thirds.input("x", f64({4, 8}));
  const auto part = [&](std::int64_t axis, std::int64_t start, std::int64_t len) {
    return narrow(x, {.axis = axis, .start = start, .len = len});
  };
  thirds.set_outputs({part(1, 0, 3) * silu(part(1, 3, 3)), part(0, 0, 2) * silu(part(0, 2, 2)),
                      part(1, 0, 4) * silu(part(1, 0, 4))});
  EXPECT_FALSE(fuse_swiglu(thirds).changed);
}

Graph attention_graph_of(bool bias, bool rope_too, std::int64_t batch) {
  Graph g("attention");
  const Value x = g.input("x", f64({batch, 3, 6}));
  Value qkv = matmul(x, g.param("qkv", f64({6, 12})));
  if (bias) qkv = qkv + g.param("qkv_b", f64({12}));
  const Value cos = g.input("cos", f64({3, 1}));
  const Value sin = g.input("sin", f64({3, 1}));
  const auto part = [&](std::int64_t k) {
    const Value third = narrow(qkv, {.axis = 2, .start = 4 * k, .len = 4});
    return rope_too && k < 2 ? rope(third, cos, sin, {.head_dim = 2}) : third;
  };
  const Value q = part(0);
  const Value heads = attention(q, part(1), part(2),
                                {.num_heads = 2, .head_dim = 2, .mask_kind = MaskKind::causal()});
  Value y = matmul(heads, g.param("out", f64({4, 6})));
  if (bias) y = y + g.param("out_b", f64({6}));
  g.set_outputs({y});
  return g;
}

TEST(RewritePatterns, ShortAttentionIsOneBlock) {
  const PatternPass pass = [](const Graph& g) { return fuse_attention_block(g); };
  for (const bool bias : {false, true}) {
    for (const bool turned : {false, true}) {
      const Graph out = fused(attention_graph_of(bias, turned, 2), pass);
      EXPECT_EQ(count(out, "fused_attention_block"), 1U) << print(out);
      EXPECT_EQ(count(out, "matmul"), 0U) << print(out);
    }
  }
  EXPECT_FALSE(pass(attention_graph_of(true, true, 40)).changed);  // 120 rows
}

TEST(RewritePatterns, ElementwiseTreesBecomeRegions) {
  Graph g("tree");
  const Value a = g.input("a", f64({4, 3}));
  const Value b = g.input("b", f64({3}));
  const Value shared = tanh(a);
  const Value y =
      where(gt(shared, 0.25), exp(a * b), cast(cast(a, {.to = DType::F32}), {.to = DType::F64}));
  g.set_outputs({sum(y, {0}), shared, sqrt(abs(b))});
  const auto marked = [](const Graph& graph) { return mark_elementwise_regions(graph); };
  const Graph out = fused(g, marked);
  EXPECT_EQ(count(out, "elementwise_region"), 2U) << print(out);
  EXPECT_EQ(count(out, "tanh"), 1U);
  const Graph back = dead_code_elimination(unfuse_elementwise_regions(out).graph).graph;
  EXPECT_EQ(count(back, "exp"), 1U);
  EXPECT_EQ(count(back, "elementwise_region"), 0U);

  for (const RegionLimits limits : {RegionLimits{3, 16}, RegionLimits{32, 2}, RegionLimits{2, 3}}) {
    const PassResult made = mark_elementwise_regions(g, limits);
    const Graph limited = tidied(g, made);
    for (const Node& node : limited.nodes()) {
      const auto* region = node.op.as<op::ElementwiseRegion>();
      if (region == nullptr) continue;
      EXPECT_LE(std::ssize(region->chain), limits.max_steps);
      EXPECT_LE(std::ssize(node.operands), limits.max_inputs);
    }
  }
  EXPECT_FALSE(clip_elementwise_regions(out, UsualRegionLimits).changed);
}

// Chains of many arrays become regions of as many as there may be, whichever way they lean.
TEST(RewritePatterns, RegionsOfChainsHaveNoMoreInputsThanTheyMay) {
  for (const bool left : {true, false}) {
    Graph g("chain");
    Value total = g.input("x", f64({8}));
    for (int i = 0; i < 40; ++i) {
      const Value more = g.input(fmt::format("x{}", i), f64({8}));
      total = left ? total * more : more * total;
    }
    g.set_outputs({total});
    const Graph out = fused(g, [](const Graph& graph) { return mark_elementwise_regions(graph); });
    EXPECT_GE(count(out, "elementwise_region"), 2U) << print(out);
    EXPECT_FALSE(clip_elementwise_regions(out, UsualRegionLimits).changed) << print(out);
  }
}

TEST(RewritePatterns, ResizesJoinWhatReadsThem) {
  Graph g("image");
  const Value x = g.input("x", f64({1, 2, 4, 6}));
  const Value y = g.input("y", f64({1, 1, 6, 4}));
  const Value big = resize_nearest2x(reverse(x, {.axes = {3}}));
  const Value crop =
      narrow(narrow(big, {.axis = 2, .start = 1, .len = 6}), {.axis = 3, .start = 2, .len = 4});
  g.set_outputs({crop});
  const Graph chain = fused(g, mark_transform_regions);
  EXPECT_EQ(chain.size(), 3U) << print(chain);  // y, which nothing reads, stays
  g.set_outputs({elementwise_region(
      {y, crop}, {.chain = {RegionStep::binary(BinaryKind::Mul, RegionOperand::input(0),
                                               RegionOperand::input(1))}})[0]});
  EXPECT_FALSE(fuse_region_prologue(g).changed);  // a crop is no resize

  Graph h("prologue");
  const Value small = h.input("small", f64({1, 2, 2, 3}));
  const Value rest = h.input("rest", f64({1, 2, 4, 6}));
  h.set_outputs({elementwise_region(
      {rest, resize_nearest2x(small)},
      {.chain = {RegionStep::activation(UnaryKind::Tanh, RegionOperand::input(1)),
                 RegionStep::binary(BinaryKind::Sub, RegionOperand::input(0),
                                    RegionOperand::step(0))}})[0]});
  const Graph out = fused(h, fuse_region_prologue);
  ASSERT_EQ(out.size(), 3U) << print(out);
  EXPECT_EQ(out.nodes()[2].operands[0], (ValueId{*out.find("small"), 0}));
  Graph one("unary");
  one.set_outputs({tanh(resize_nearest2x(one.input("x", f64({1, 1, 2, 2}))))});
  EXPECT_EQ(count(fused(one, fuse_region_prologue), "transform_region"), 1U);
}

// Patterns look at last axes, which scalars have none of.
TEST(RewritePatterns, ScalarsAndVectorsAreNoPatterns) {
  Graph g("scalars");
  const Value x = g.input("x", f64({}));
  const Value v = g.input("v", f64({3}));
  const Value s = x + x * silu(x);
  const Value w = v + v * silu(v);
  g.set_outputs({tanh(s + x), rms_norm(w + v, v, v), layer_norm(v + x, v, v)});
  (void)fused(g, [](const Graph& graph) { return fuse_patterns(graph); });
  for (const Pass& pass : all_passes()) {
    if (pass.name.starts_with("fuse_") || pass.name.starts_with("mark_")) {
      (void)tidied(g, pass.run(g));
    }
  }
  EXPECT_TRUE(report_patterns(g, g).misses.empty());
}

TEST(RewritePatterns, BodiesAreSearchedToo) {
  Graph g("loop");
  const Value w = g.param("w", f64({3, 3}));
  const Value b = g.param("b", f64({3}));
  g.set_outputs({scan(std::array{g.input("c", f64({2, 3}))}, {.bcasts = {w, b}, .length = Dim(3)},
                      [](Graph&, std::span<const Value> in) {
                        return std::vector<Value>{tanh(matmul(in[0], in[1]) + in[2])};
                      })[0]});
  const Graph out = fused(g, fuse_matmul_bias_act);
  EXPECT_EQ(count(*out.nodes().back().body("body"), "fused_matmul_bias_act"), 1U);
}

TEST(RewritePatterns, ReductionsOfTheLastAxisAlone) {
  for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 2}, Axes{0, 1, 2}, Axes{2}}) {
    for (const ReduceKind kind : {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Mean}) {
      for (const bool keep : {false, true}) {
        Graph g("reduce");
        g.set_outputs(
            {reduce(g.input("x", f64({2, 3, 4})), {.op = kind, .axes = axes, .keep_dim = keep})});
        const Graph out = fused(g, lower_non_last_axis_reduce);
        EXPECT_LE(count(out, "transpose"), 1U);
        for (const Node& node : out.nodes()) {
          const auto* op = node.op.as<op::Reduce>();
          if (op == nullptr) continue;
          ASSERT_EQ(op->axes.size(), 1U);
          EXPECT_EQ(op->axes[0].index() + 1, out.type(node.operands[0]).rank());
        }
      }
    }
  }
}

TEST(RewritePatterns, LogicalKernelsGoTheWayTheyAreTold) {
  Graph g("kernels");
  const Value x = g.input("x", f64({2, 4, 3, 3}));
  const Value n =
      group_norm(x, g.param("gamma", f64({4})), g.param("beta", f64({4})), {.num_groups = 2});
  g.set_outputs({resize_nearest2x(n)});
  const auto left = [&](const SupportedOps& ops, const KernelDispatch& d) {
    const Graph out = tidied(g, lower_logical_kernels(g, ops, d));
    return std::pair{count(out, "group_norm"), count(out, "resize")};
  };
  using Counts = std::pair<std::size_t, std::size_t>;
  const SupportedOps only_norm = SupportedOps::only({OpKind::GroupNorm});
  EXPECT_EQ(left({}, {}), Counts(1, 1));
  EXPECT_EQ(left(only_norm, {}), Counts(1, 0));
  EXPECT_EQ(left(only_norm, {.policy = DispatchPolicy::ForceNative}), Counts(1, 1));
  EXPECT_EQ(left({}, {.policy = DispatchPolicy::ForceCommon}), Counts(0, 0));
  EXPECT_EQ(left({}, {.force_common_kinds = {OpKind::GroupNorm}}), Counts(0, 1));
  EXPECT_EQ(left({}, {.policy = DispatchPolicy::ForceCommon,
                      .force_native_kinds = {OpKind::GroupNorm},
                      .force_common_kinds = {OpKind::GroupNorm}}),
            Counts(1, 0));
  EXPECT_EQ(count(fused(g, lower_group_norm), "group_norm"), 0U);
  EXPECT_EQ(count(fused(g, lower_resize_nearest_2x), "resize"), 0U);
}

TEST(RewritePatterns, AllOfThemAsFarAsTheyAreClaimed) {
  const Graph g = attention_graph_of(true, false, 1);
  const PassResult all = fuse_patterns(g);
  EXPECT_EQ(count(tidied(g, all), "fused_attention_block"), 1U);
  const PassResult some = fuse_patterns(g, SupportedOps::only({OpKind::FusedMatmulBiasAct}));
  EXPECT_EQ(count(tidied(g, some), "fused_matmul_bias_act"), 2U);
  EXPECT_EQ(count(some.graph, "fused_attention_block"), 0U);
  EXPECT_FALSE(fuse_patterns(g, SupportedOps::only({OpKind::Conv})).changed);
}

TEST(RewritePatterns, WhatIsLeftHasAReason) {
  Graph g("left");
  const Value x = g.input("x", f64({4, 3}));
  const Value w = g.param("w", f64({3, 5}));
  const Value b = g.param("b", f64({5}));
  const Value twice = matmul(x, w);
  const Value tall = matmul(tanh(x), w) + g.param("t", f64({1, 1, 5}));
  const Value bare = tanh(matmul(exp(x), w));
  const Value y = g.input("y", f64({4, 8}));
  const Value gated = narrow(y, {.axis = 1, .start = 0, .len = 3}) *
                      silu(narrow(y, {.axis = 1, .start = 3, .len = 3}));
  const Value apart = matmul(cos(x), w) * silu(matmul(sin(x), w));
  const Value layer = fused_matmul_bias_act(sqrt(x), w, b);
  g.set_outputs({twice + b, twice, tall, bare, gated, apart, is_nan(layer), matmul(x, w)});
  const PatternReport report = report_patterns(g, g);
  const auto reasons = [&](std::string_view pattern) {
    std::vector<std::string> out;
    for (const PatternMiss& m : report.misses) {
      if (m.pattern == pattern) out.emplace_back(name(m.reason));
    }
    std::ranges::sort(out);
    return out;
  };
  using Reasons = std::vector<std::string>;
  EXPECT_EQ(reasons("matmul_bias_act"),
            (Reasons{"bias_rank_too_high", "multi_consumer", "non_add_bias_consumer",
                     "non_add_bias_consumer", "unsupported_epilogue_activation"}));
  EXPECT_EQ(reasons("swiglu"), (Reasons{"swiglu_gate_before_up", "swiglu_not_shared_input"}));
  EXPECT_EQ(reasons("shared_input_matmul"), Reasons{"shared_matmul_count"});
  EXPECT_EQ(report.fused.at("fused_matmul_bias_act"), 1U);
  const std::string text = report.to_string();
  EXPECT_NE(text.find("left: swiglu at node"), std::string::npos) << text;
  EXPECT_NE(text.find("rewrite_patterns_test"), std::string::npos) << text;

  Layer l;
  const Graph done = l.done({tanh(l.product + l.bias)});
  EXPECT_TRUE(report_patterns(done, fuse_matmul_bias_act(done).graph)
                  .fused.contains("fused_matmul_bias_act"));
  ASSERT_EQ(report_patterns(done, done).misses.size(), 1U);
  EXPECT_EQ(report_patterns(done, done).misses[0].reason, MissReason::NotFused);
}

}  // namespace
}  // namespace ricci::testing::rewrite_patterns_test
