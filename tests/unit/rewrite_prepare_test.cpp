// Passes that take ops apart: nothing they promise to remove is left, and values stay.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compat/sequence.h"
#include "ricci/compiler/rewrite/batch_regions.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/control_flow.h"
#include "ricci/compiler/rewrite/prepare.h"
#include "ricci/compiler/rewrite/unfuse.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/prepare.h"

#include "ops/control_bodies.h"
#include "support/compare.h"
#include "support/count.h"

namespace ricci::testing::rewrite_prepare_test {
namespace {

Feeds random_feeds(const Graph& graph, std::uint64_t seed = 1) {
  Feeds feeds;
  for (const NodeId id : graph.inputs()) {
    const Node& node = graph.node(id);
    feeds.emplace(node.op.as<op::Input>()->name, random_tensor(seed++, node.types[0], -1, 1));
  }
  for (const NodeId id : graph.params()) {
    const Node& node = graph.node(id);
    feeds.emplace(node.op.as<op::Param>()->name, random_tensor(seed++, node.types[0], -1, 1));
  }
  return feeds;
}

using PassFunction = std::function<PassResult(const Graph&)>;

// Runs a pass and checks what every pass owes: a sound graph, the same values, a map that leads to
// the outputs, the same result every time, and nothing left to do.
Graph passed(const Graph& graph, const PassFunction& pass, const Feeds& feeds) {
  const PassResult r = pass(graph);
  verify(r.graph);
  EXPECT_TRUE(r.changed);
  EXPECT_EQ(r.graph.outputs().size(), graph.outputs().size());
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    EXPECT_EQ(r.map(graph.outputs()[i]), r.graph.outputs()[i]);
  }
  EXPECT_EQ(print(pass(graph).graph), print(r.graph));
  EXPECT_FALSE(pass(r.graph).changed);
  const std::vector<Tensor> before = interpret(graph, feeds);
  const std::vector<Tensor> after = interpret(r.graph, feeds);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(close(after[i], before[i])) << "output " << i;
  }
  return r.graph;
}
Graph passed(const Graph& graph, const PassFunction& pass) {
  return passed(graph, pass, random_feeds(graph));
}

// if p { if q { (a·b, a) } else { (a, b) } } else { (b, a) }, two outputs
Graph nested_branches() {
  Graph g("nested");
  const Value p = g.input("p", f64({1}));
  const Value q = g.input("q", f64());
  const Value a = g.input("a", f64({2, 3}));
  const Value b = g.input("b", f64({2, 3}));
  const auto inner = [](Graph&, Inputs in) {
    return cond(
        in[0], in.subspan(1), [](Graph&, Inputs x) { return Values{x[0] * x[1], x[0]}; },
        [](Graph&, Inputs x) { return Values{x[0], x[1]}; });
  };
  g.set_outputs(
      cond(p, std::array{q, a, b}, inner, [](Graph&, Inputs in) { return Values{in[2], in[1]}; }));
  return g;
}

TEST(InlineIf, SelectsEveryOutputOfNestedBranches) {  // [if-lazy] [if-multi-output]
  const Graph g = nested_branches();
  Feeds feeds = random_feeds(g);
  for (const double p : {0.0, 1.0}) {
    for (const double q : {0.0, -2.0}) {
      feeds["p"] = Tensor::splat(f64({1}), p);
      feeds["q"] = Tensor::splat(f64(), q);
      const Graph flat = passed(g, inline_if, feeds);
      EXPECT_EQ(count_everywhere(flat, "if"), 0U);
      EXPECT_EQ(count(flat, "where"), 4U);
    }
  }
}

TEST(InlineIf, ReachesIntoLoopsThatStay) {  // [recurse-into-bodies]
  Graph g("loop");
  const Value c = g.input("c", f64({3}));
  const auto step = [](Graph&, Inputs in) {
    const Value rises = gt(sum(in[0]), scalar_like(in[0], 0));
    return cond(
        rises, in, [](Graph&, Inputs x) { return Values{-x[0]}; },
        [](Graph&, Inputs x) { return Values{x[0] * 0.5}; });
  };
  g.set_outputs({scan(c, step, 4)});
  const Graph flat = passed(g, inline_if);
  EXPECT_EQ(count_everywhere(flat, "if"), 0U);
  EXPECT_EQ(count(flat, "scan"), 1U);
}

// c doubles as long as every element is below 5; a counter goes along.
Graph doubling(std::optional<std::int64_t> bound, std::int64_t checkpoints = 0) {
  Graph g("doubling");
  const Value c = g.input("c", f64({2}));
  const Value n = g.input("n", i32());
  const WhileResult r = while_loop(
      std::array{c, n}, [](Graph&, Inputs in) { return Values{lt(in[0], scalar_like(in[0], 5))}; },
      [](Graph&, Inputs in) { return Values{in[0] * 2.0, in[1] + scalar_like(in[1], 1)}; },
      {.max_iterations = bound,
       .checkpoints = checkpoints,
       .trip_count = true,
       .tapes = bound.has_value()});
  Values outputs = r.carries;
  outputs.push_back(r.trip_count);
  outputs.insert(outputs.end(), r.tapes.begin(), r.tapes.end());
  g.set_outputs(outputs);
  return g;
}

TEST(UnrollWhile, StopsWhenTheConditionTurnsFalse) {  // [while-cond-honoured] [while-multi-output]
  for (const std::int64_t checkpoints : {0, 2, 3}) {
    const Graph g = doubling(7, checkpoints);
    for (const double start : {0.5, 1.0, 4.9, 6.0}) {
      const Feeds feeds = {{"c", Tensor::from_numbers<double>(f64({2}), std::array{start, 0.1})},
                           {"n", Tensor::splat(i32(), 0)}};
      EXPECT_EQ(count_everywhere(passed(g, unroll_while, feeds), "while"), 0U);
    }
  }
}

TEST(UnrollWhile, ALoopThatMayNotRunGivesItsCarriesBack) {
  const Graph flat = passed(doubling(0), unroll_while);
  EXPECT_EQ(count(flat, "mul"), 0U);
}

TEST(UnrollWhile, ALoopWithoutABoundIsRefused) {
  try {
    (void)unroll_while(doubling(std::nullopt));
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::UnboundedLoop);
    EXPECT_NE(e.diagnostic().where.file.find("rewrite_prepare_test"), std::string::npos);
  }
  try {
    (void)prepare_graph_for_ad(doubling(std::nullopt));
    FAIL() << "accepted";
  } catch (const AutodiffError& e) {
    EXPECT_EQ(e.code(), ErrorCode::UnboundedLoop);
  }
}

TEST(LowerControlFlow, WritesOutABranchBeforeALoop) {
  Graph g("both");
  const Value p = g.input("p", f64({1}));
  const Value x = g.input("x", f64({2}));
  const Value y = cond(
      p, std::array{x}, [](Graph&, Inputs in) { return Values{in[0] * in[0]}; },
      [](Graph&, Inputs in) { return Values{in[0] * 2.0}; })[0];
  g.set_outputs(while_loop(
                    std::array{y},
                    [](Graph&, Inputs in) { return Values{lt(in[0], scalar_like(in[0], 9))}; },
                    [](Graph&, Inputs in) { return Values{in[0] * in[0]}; }, {.max_iterations = 2})
                    .carries);
  const Graph flat = passed(g, lower_control_flow);
  EXPECT_EQ(count(flat, "where"), 3U);
  EXPECT_EQ(count(flat, "mul"), 4U);
}

struct LoopShape {
  std::int64_t length;
  bool trajectory;
  std::int64_t checkpoints;
  bool reverse;
};

// Two carries, one of them an integer, a bcast, two xs and a stacked output.
Graph looped(const LoopShape& s) {
  Graph g("looped");
  const Value c = g.input("c", f64({2}));
  const Value n = g.input("n", i32());
  const Value w = g.input("w", f64({2}));
  const Value x = g.input("x", f64({s.length, 2}));
  const Value y = g.input("y", f64({s.length}));
  g.set_outputs(scan(std::array{c, n},
                     {.bcasts = {w},
                      .xs = {x, y},
                      .length = Dim(s.length),
                      .trajectory = s.trajectory,
                      .checkpoints = s.checkpoints,
                      .reverse = s.reverse},
                     [](Graph&, Inputs in) {
                       const Value next = tanh(in[0] * in[2] + in[3]);
                       return Values{next, in[1] + scalar_like(in[1], 1), next * in[4]};
                     }));
  return g;
}

std::vector<LoopShape> loop_shapes() {
  std::vector<LoopShape> out;
  for (const std::int64_t length : {0, 1, 2, 5, 7}) {
    for (const bool trajectory : {false, true}) {
      for (const bool reverse : {false, true}) {
        out.push_back({length, trajectory, 0, reverse});
        if (length >= 5) out.push_back({length, trajectory, 3, reverse});
      }
    }
  }
  return out;
}

std::string to_string(const LoopShape& s) {
  return "length " + std::to_string(s.length) + (s.trajectory ? " trajectory" : "") +
         " checkpoints " + std::to_string(s.checkpoints) + (s.reverse ? " reverse" : "");
}

TEST(UnrollScans, WritesOutEveryKindOfScan) {  // [scan-multi-carry]
  for (const LoopShape& s : loop_shapes()) {
    SCOPED_TRACE(to_string(s));
    const Graph flat = passed(looped(s), [](const Graph& g) { return unroll_scans(g); });
    EXPECT_EQ(count(flat, "scan"), 0U);
    EXPECT_EQ(count(flat, "narrow"), static_cast<std::size_t>(2 * s.length));
    EXPECT_EQ(count(flat, "tanh"), static_cast<std::size_t>(s.length));
  }
}

TEST(UnrollScans, LeavesALoopOverBlocksOfSteps) {  // [loops-no-unroll]
  for (const LoopShape& s : loop_shapes()) {
    if (s.length < 4 || (s.trajectory && s.checkpoints > 0)) continue;
    SCOPED_TRACE(to_string(s));
    const Graph g = looped(s);
    const PassResult r = unroll_scans(g, {.factor = 2});
    verify(r.graph);
    EXPECT_EQ(count(r.graph, "scan"), 1U);
    EXPECT_EQ(count_everywhere(r.graph, "tanh"), static_cast<std::size_t>(2 + s.length % 2));
    const Feeds feeds = random_feeds(g);
    const std::vector<Tensor> before = interpret(g, feeds);
    const std::vector<Tensor> after = interpret(r.graph, feeds);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(same(after[i], before[i])) << i;
  }
}

TEST(UnrollScans, NeedsToKnowTheLength) {
  Graph g("symbolic");
  const Value c = g.input("c", f64());
  const Value x = g.input("x", f64({Dim::symbol("n")}));
  g.set_outputs({scan_with_xs(
      c, std::array{x}, [](Graph&, Inputs in) { return Values{in[0] + in[1]}; },
      Dim::symbol("n"))});
  try {
    (void)unroll_scans(g);
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::NeedsStaticDim);
  }
  EXPECT_THROW((void)unroll_scans(g, {.factor = 0}), UserError);
}

TEST(ConvertScans, TheFinalCarryIsARowOfTheTrajectory) {  // [scan-ckpt-forward-value]
  for (const LoopShape& s : loop_shapes()) {
    if (s.trajectory) continue;
    SCOPED_TRACE(to_string(s));
    const Graph kept = passed(looped(s), convert_scans_for_ad);
    const auto* op = kept.nodes()[kept.inputs().size()].op.as<op::Scan>();
    ASSERT_NE(op, nullptr);
    EXPECT_TRUE(op->save_trajectory);
    EXPECT_EQ(op->num_checkpoints, s.checkpoints);
  }
}

TEST(ConvertScans, ALoopOfUnknownLengthMayBeEmpty) {  // [dynamic-correct]
  for (const bool reverse : {false, true}) {
    Graph g("symbolic");
    const Value c = g.input("c", f64({2}));
    const Value x = g.input("x", f64({Dim::symbol("n"), 2}));
    g.set_outputs(scan(std::array{c}, {.xs = {x}, .reverse = reverse},
                       [](Graph&, Inputs in) { return Values{in[0] * in[1]}; }));
    for (const std::int64_t n : {0, 1, 4}) {
      const Feeds feeds = {{"c", random_tensor(1, f64({2}))}, {"x", random_tensor(2, f64({n, 2}))}};
      (void)passed(g, convert_scans_for_ad, feeds);
    }
  }
}

TEST(MaterializeBcasts, EveryStepHasItsOwnCopy) {
  for (const LoopShape& s : loop_shapes()) {
    SCOPED_TRACE(to_string(s));
    const Graph rows = passed(looped(s), materialize_bcasts_for_ad);
    for (const Node& node : rows.nodes()) {
      const auto* op = node.op.as<op::Scan>();
      EXPECT_TRUE(op == nullptr || op->num_bcast == 0);
    }
  }
}

TEST(LegalizeReduce, OneAxisAtATime) {  // [RD-07]
  for (const ReduceKind kind : {ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min,
                                ReduceKind::Prod, ReduceKind::LogSumExp}) {
    for (const bool keep_dim : {false, true}) {
      for (const DType dtype : {DType::F64, DType::F16}) {
        Graph g("reduce");
        const Value x = g.input("x", Type{dtype, {2, 3, 4, 2}});
        const Value y = reduce(x, {.op = kind, .axes = {0, 2, 3}, .keep_dim = keep_dim});
        g.set_outputs({y + y});
        const Graph flat = passed(g, legalize_multi_axis_reduce);
        for (const Node& node : flat.nodes()) {
          const auto* op = node.op.as<op::Reduce>();
          EXPECT_TRUE(op == nullptr || op->axes.size() <= 1);
        }
      }
    }
  }
}

TEST(LegalizeReduce, TiesShareAGradientAsBefore) {  // [RD-01]
  Graph g("ties");
  const Value x = g.input("x", f64({2, 2}));
  g.set_outputs({reduce(x, {.op = ReduceKind::Max, .axes = {0, 1}})});
  const Feeds feeds = {
      {"x", Tensor::from_numbers<double>(f64({2, 2}), std::array{1.0, 1.0, 1.0, 0.0})}};
  const Graph whole = value_and_grad(g, {"x"}).graph;
  const Graph flat = value_and_grad(legalize_multi_axis_reduce(g).graph, {"x"}).graph;
  EXPECT_TRUE(close(interpret(flat, feeds)[1], interpret(whole, feeds)[1]));
}

TEST(LowerDotGeneral, LeavesMatrixProductsOnly) {  // [dot-general-full]
  struct Form {
    Dims lhs, rhs;
    op::DotGeneral op;
  };
  const std::vector<Form> forms = {
      {{2, 3}, {3, 4}, {.lhs_contracting = {1}, .rhs_contracting = {0}}},
      {{3, 2}, {4, 3}, {.lhs_contracting = {0}, .rhs_contracting = {1}}},
      {{2, 5, 3},
       {2, 3, 4},
       {.lhs_contracting = {2}, .rhs_contracting = {1}, .lhs_batch = {0}, .rhs_batch = {0}}},
      {{3, 5, 2}, {4, 2, 5}, {.lhs_contracting = {1, 2}, .rhs_contracting = {2, 1}}},
      {{3}, {3}, {.lhs_contracting = {0}, .rhs_contracting = {0}}},
      {{2}, {3}, {}},
  };
  for (const Form& form : forms) {
    Graph g("dot");
    const Value a = g.input("a", f64(form.lhs));
    const Value b = g.input("b", f64(form.rhs));
    g.set_outputs({dot_general(a, b, form.op)});
    const Graph flat = passed(g, lower_dot_general);
    EXPECT_EQ(count(flat, "dot_general"), 0U);
    EXPECT_EQ(count(flat, "matmul"), 1U);
  }
  Graph plain("plain");
  const Value a = plain.input("a", f64({2, 3}));
  const Value b = plain.input("b", f64({3, 4}));
  plain.set_outputs({dot_general(a, b, {.lhs_contracting = {1}, .rhs_contracting = {0}})});
  EXPECT_EQ(lower_dot_general(plain).graph.size(), plain.size());
}

TEST(InlineCustomFn, KeepsFunctionsThatHaveARule) {
  Graph g("functions");
  const Value x = g.input("x", f64({3}));
  const auto square = [](Graph&, Inputs in) { return Values{in[0] * in[0]}; };
  const Value plain = custom_fn(std::array{x}, square);
  const Value ruled =
      custom_fn(std::array{plain}, square,
                {.vjp = [](Graph&, const VjpInputs& in) { return Values{in.d_outputs[0]}; }});
  g.set_outputs({ruled});
  const Graph flat = passed(g, inline_custom_fn_for_autodiff);
  EXPECT_EQ(count(flat, "custom_fn"), 1U);
}

Graph with_regions() {
  Graph g("regions");
  const Value x = g.input("x", f64({4, 2}));
  const Value y = g.input("y", f64({2}));
  const auto in = RegionOperand::input;
  const auto step = RegionOperand::step;
  const std::vector<RegionStep> chain = {
      RegionStep::activation(UnaryKind::Tanh, in(0)),
      RegionStep::binary(BinaryKind::Add, step(0), in(1)),
      RegionStep::compare(CompareKind::Gt, step(1), in(0)),
      RegionStep::where(step(2), step(1), in(0)),
  };
  const std::vector<RegionStep> short_chain = {RegionStep::activation(UnaryKind::Exp, in(0))};
  std::vector<Value> outputs = elementwise_region({x, y}, {.chain = chain, .outputs = {{1, 3}}});
  outputs.push_back(elementwise_region({y}, {.chain = short_chain})[0]);
  outputs.push_back(batch_elementwise_region({x, x}, {.chain = short_chain}));
  g.set_outputs(outputs);
  return g;
}

TEST(UnfuseRegions, OneNodePerStep) {
  const Graph regions = passed(with_regions(), decompose_fusion_regions);
  EXPECT_EQ(count(regions, "batch_elementwise_region"), 0U);
  EXPECT_EQ(count(regions, "elementwise_region"), 4U);
  const Graph flat = passed(regions, [](const Graph& g) { return unfuse_elementwise_regions(g); });
  EXPECT_EQ(count(flat, "elementwise_region"), 0U);
  EXPECT_EQ(count(flat, "exp"), 3U);
  EXPECT_EQ(count(flat, "where"), 1U);
}

TEST(UnfuseRegions, LimitsSayWhichRegionsStay) {
  const auto left = [](RegionLimits limits) {
    return count(unfuse_elementwise_regions(with_regions(), limits).graph, "elementwise_region");
  };
  EXPECT_EQ(left({.max_steps = 3, .max_inputs = 16}), 1U);
  EXPECT_EQ(left({.max_steps = 4, .max_inputs = 1}), 1U);
  EXPECT_EQ(left({.max_steps = 4, .max_inputs = 2}), 2U);
  EXPECT_EQ(left(RegionLimits::unfuse_all()), 0U);
}

// relu of slices of x, in a given order of rows
Graph sliced(const std::vector<std::int64_t>& starts, UnaryKind last, bool other_reader = false) {
  Graph g("sliced");
  const Value x = g.input("x", f64({6, 3}));
  std::vector<Value> parts;
  for (const std::int64_t start : starts) {
    const bool is_last = parts.size() + 1 == starts.size();
    const Value slice = narrow(x, {.axis = 0, .start = start, .len = 2});
    parts.push_back(activation(is_last ? last : UnaryKind::Relu, slice));
  }
  std::vector<Value> outputs = {concat(parts, {.axis = 0})};
  if (other_reader) outputs.push_back(parts[0]);
  g.set_outputs(outputs);
  return g;
}

PassResult batch_regions(const Graph& g) {
  PassResult marked = mark_batch_slice_regions(g);
  PassResult fused = fuse_batch_preprocess(marked.graph);
  const bool changed = marked.changed || fused.changed;
  return {std::move(fused.graph), marked.map.then(fused.map), changed};
}

TEST(BatchRegions, JoinSlicesInTheOrderTheyAreRead) {  // [batch-preprocess-order]
  for (const auto& starts : {std::vector<std::int64_t>{0, 2, 4}, {4, 0}, {1, 1, 3}}) {
    const Graph fused = passed(sliced(starts, UnaryKind::Relu), batch_regions);
    EXPECT_EQ(count(fused, "batch_elementwise_region"), 1U);
    EXPECT_EQ(count(fused, "concat"), 0U);
  }
}

TEST(BatchRegions, NeedOneChainAndNoOtherReader) {  // [batch-preprocess-order] [pass-id-map]
  EXPECT_FALSE(batch_regions(sliced({0, 2}, UnaryKind::Tanh)).changed);
  const Graph read_twice = batch_regions(sliced({0, 2}, UnaryKind::Relu, true)).graph;
  EXPECT_EQ(count(read_twice, "batch_elementwise_region"), 0U);
  Graph g("chains");  // as long as each other, but not the same
  const Value x = g.input("x", f64({2, 3}));
  std::vector<Value> parts;
  for (const UnaryKind kind : {UnaryKind::Relu, UnaryKind::Tanh}) {
    const Value slice = narrow(x, {.axis = 0, .start = 0, .len = 1});
    parts.push_back(elementwise_region(
        {slice}, {.chain = {RegionStep::activation(kind, RegionOperand::input(0))}})[0]);
  }
  g.set_outputs({concat(parts, {.axis = 0})});
  EXPECT_FALSE(fuse_batch_preprocess(g).changed);
}

Graph sequence_models() {
  Graph g("sequences");
  const auto in = [&](const char* name, Dims dims) { return g.input(name, f64(std::move(dims))); };
  const WithState s = selective_scan_with_state(
      in("x", {2, 3, 2}), in("delta", {2, 3, 2}), in("a", {2, 4}), in("b", {2, 3, 4}),
      in("c", {2, 3, 4}), {.state_size = 4}, in("h0", {2, 2, 4}));
  const WithState d =
      gated_delta_net_carry(in("q", {1, 3, 1, 4}), in("k", {1, 3, 1, 4}), in("v", {1, 3, 2, 3}),
                            in("g", {1, 3, 2}), in("beta", {1, 3, 2}), in("s0", {1, 2, 4, 3}), 4);
  g.set_outputs({s.out, s.state, d.out, d.state});
  return g;
}

TEST(Unfuse, SequenceModelsAreWrittenOutOverTime) {
  const Graph flat = passed(sequence_models(), unfuse_fused_for_autodiff);
  for (const char* op : {"selective_scan", "gated_delta_net", "scan"}) {
    EXPECT_EQ(count_everywhere(flat, op), 0U) << op;
  }
}

TEST(Unfuse, FusedOpsBecomeWhatTheyStandFor) {
  Graph g("fused");
  const Value x = g.input("x", f64({2, 3}));
  const Value w = g.input("w", f64({3, 4}));
  const Value bias = g.input("bias", f64({4}));
  const Value y = fused_matmul_bias_act(x, w, bias, {.activation = UnaryKind::Silu});
  const Value z =
      lora_matmul(x, w, g.input("a", f64({3, 2})), g.input("b", f64({2, 4})), {.scale = 0.5});
  const Value norm = fused_residual_ln({y, z, bias, bias});
  g.set_outputs({fused_swiglu(norm, {.gate_first = true})});
  const Graph flat = passed(g, unfuse_fused_for_autodiff);
  for (const Node& node : flat.nodes()) {
    EXPECT_FALSE(node.op.mnemonic().starts_with("fused_")) << node.op.mnemonic();
  }
  EXPECT_EQ(count(flat, "matmul"), 4U);
  EXPECT_EQ(count(flat, "layer_norm"), 1U);
}

// Everything preparation takes apart, inside of branches, loops and functions.
Graph things_within_things() {
  Graph g("within");
  const Value p = g.input("p", f64({1}));
  const Value x = g.input("x", f64({2, 2}));
  const Value b = g.input("b", f64({2}));
  const auto fused = [](Graph&, Inputs in) {
    return Values{fused_matmul_bias_act(in[0], in[0], in[1], {.activation = UnaryKind::Tanh})};
  };
  const auto function = [&](Graph&, Inputs in) {
    const Value y = custom_fn(in, fused);
    const Value d = dot_general(y, y, {.lhs_contracting = {0}, .rhs_contracting = {0}});
    return Values{d * reduce(y, {.op = ReduceKind::Sum, .axes = {0, 1}})};
  };
  const auto region = [](Graph&, Inputs in) {
    return elementwise_region(
        {in[0], in[1]}, {.chain = {RegionStep::binary(BinaryKind::Mul, RegionOperand::input(0),
                                                      RegionOperand::input(1))}});
  };
  const Value branched = cond(p, std::array{x, b}, function, region)[0];
  const Value looped =
      while_loop(
          std::array{branched, b},
          [](Graph&, Inputs in) { return Values{lt(sum(in[0]), scalar_like(in[0], 3))}; },
          [&](Graph& graph, Inputs in) { return Values{function(graph, in)[0] + in[0], in[1]}; },
          {.max_iterations = 2})
          .carries[0];
  g.set_outputs({scan_with_bcasts_and_xs(
      looped, std::array{b}, {}, [&](Graph& graph, Inputs in) { return function(graph, in); }, 2)});
  return g;
}

TEST(Prepare, ReachesWhatIsHiddenInBodies) {  // [prepare-fixpoint]
  const Graph g = things_within_things();
  Feeds feeds = random_feeds(g);
  for (const double p : {0.0, 1.0}) {
    feeds["p"] = Tensor::splat(f64({1}), p);
    const Graph flat = passed(g, prepare_for_autodiff, feeds);
    for (const char* op : {"if", "while", "custom_fn", "fused_matmul_bias_act", "dot_general",
                           "elementwise_region"}) {
      EXPECT_EQ(count_everywhere(flat, op), 0U) << op;
    }
    EXPECT_EQ(count(flat, "scan"), 1U);
  }
}

TEST(Prepare, KeepsNamesAndPlaces) {  // [prepare-minimal]
  Graph g("names");
  const Value x = g.input("x", f64({2, 3}));
  g.set_outputs({reduce(x, {.op = ReduceKind::Sum, .axes = {0, 1}}).named("total")});
  const PassResult r = prepare_for_autodiff(g);
  const Node& out = r.graph.node(r.graph.outputs()[0].node);
  EXPECT_EQ(out.names[0], "total");
  EXPECT_EQ(out.provenance->origin, "legalize_multi_axis_reduce");
  EXPECT_NE(out.provenance->where.file.find("rewrite_prepare_test"), std::string::npos);
}

TEST(Prepare, FindsNothingToDoInPrimitives) {
  Graph g("plain");
  const Value x = g.input("x", f64({2, 3}));
  g.set_outputs({sum(tanh(x), {1})});
  const PassResult r = prepare_for_autodiff(g);
  EXPECT_FALSE(r.changed);
  EXPECT_EQ(r.graph, g);
}

TEST(DecomposeBackward, LeavesPrimitives) {
  Graph g("backward");
  const Value x = g.input("x", f64({2, 3}));
  const Value gamma = g.input("gamma", f64({3}));
  const Value dy = g.input("dy", f64({2, 3}));
  const auto norm = layer_norm_backward(x, gamma, dy);
  g.set_outputs({norm[0], norm[1], norm[2], relu_backward(x, dy),
                 activation_backward(x, dy, {.kind = UnaryKind::Gelu}),
                 cumsum_backward(dy, {.axis = 1})});
  const Graph flat = passed(g, decompose_backward_ops);
  for (const Node& node : flat.nodes()) {
    EXPECT_FALSE(node.op.mnemonic().ends_with("_backward")) << node.op.mnemonic();
  }
}

TEST(InternalizeSeed, TheCotangentIsOne) {
  Graph g("loss");
  const Value x = g.input("x", f64({3}));
  g.set_outputs({tanh(x)});
  const PassResult r = internalize_d_output(grad_with_loss(g, {"x"}).graph);
  verify(r.graph);
  EXPECT_TRUE(r.changed);
  EXPECT_EQ(r.graph.inputs().size(), 1U);
  const Feeds feeds = random_feeds(g);
  const Graph expected = value_and_grad(g, {"x"}).graph;
  EXPECT_TRUE(close(interpret(r.graph, feeds)[1], interpret(expected, feeds)[1]));
}

}  // namespace
}  // namespace ricci::testing::rewrite_prepare_test
