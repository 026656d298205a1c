// Graphs in mixed precision: what changes its dtype, what does not, and that values stay close.
#include <gtest/gtest.h>

#include "ricci/build/attention.h"
#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/compiler/rewrite/precision.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/model/optimizer.h"
#include "ricci/op/elementwise.h"
#include "ricci/transform/grad.h"

#include "support/compare.h"

namespace ricci::testing::rewrite_precision_test {
namespace {

Graph product() {
  Graph g("product");
  const Value x = g.input("x", f32({3, 4}));
  const Value w = g.param("w", f32({4, 2}));
  g.set_outputs({matmul(x, w)});
  return g;
}

std::size_t count_of(const Graph& graph, std::string_view mnemonic) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op.mnemonic() == mnemonic ? 1 : 0;
  return count;
}

const Node& first_of(const Graph& graph, std::string_view mnemonic) {
  for (const Node& node : graph.nodes()) {
    if (node.op.mnemonic() == mnemonic) return node;
  }
  throw std::logic_error("there is no " + std::string(mnemonic));
}

Graph mixed(const Graph& graph, const PrecisionPolicy& policy) {
  PassResult result = auto_mixed_precision(graph, policy);
  verify(result.graph);
  return std::move(result.graph);
}

TEST(RewritePrecision, CastsOperandsAndOutputsOfAProduct) {
  const Graph g = mixed(product(), PrecisionPolicy::auto_mixed());
  EXPECT_EQ(g.size(), 6U) << print(g);
  EXPECT_EQ(count_of(g, "cast"), 3U);
  EXPECT_EQ(first_of(g, "matmul").types[0].dtype, DType::F16);
  EXPECT_EQ(g.type(g.outputs()[0]), f32({3, 2}));
}

TEST(RewritePrecision, AlwaysF32ChangesNothing) {
  const PassResult result = auto_mixed_precision(product(), PrecisionPolicy::always_f32());
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.graph, product());
}

TEST(RewritePrecision, CastsAValueOnceForAllThatReadIt) {
  Graph g("shared");
  const Value x = g.input("x", f32({4, 4}));
  g.set_outputs({matmul(x, x), matmul(x, transpose(x, {.perm = {1, 0}}))});
  const Graph m = mixed(g, PrecisionPolicy::auto_mixed_bf16());
  EXPECT_EQ(count_of(m, "cast"), 3U) << print(m);  // x once, and two outputs
}

// [amp-types] What is no f32 is nobody's to change: indices, labels, masks, f64, complex numbers,
// casts.
TEST(RewritePrecision, LeavesOtherDtypesAlone) {
  Graph g("others");
  const Value table = g.param("table", f32({5, 3}));
  const Value rows = g.input("rows", Type{DType::I32, {2}});
  const Value wide = g.input("wide", f64({3}));
  const Value picked = gather(table, rows, {.axis = 0});
  const Value above = gt(picked, filled(g, f32({}), 0.5));
  const Value to_f64 = cast(sum(picked, {0}), {.to = DType::F64});
  g.set_outputs({above, to_f64 * wide, exp(wide)});
  const Graph m = mixed(g, PrecisionPolicy::auto_mixed());
  EXPECT_EQ(m.type(m.outputs()[0]).dtype, DType::Bool);
  EXPECT_EQ(m.type(m.outputs()[1]).dtype, DType::F64);
  EXPECT_EQ(first_of(m, "gather").types[0].dtype, DType::F16);
  EXPECT_EQ(m.type(first_of(m, "gather").operands[1]).dtype, DType::I32);
  EXPECT_EQ(first_of(m, "exp").types[0].dtype, DType::F64);
}

TEST(RewritePrecision, ConservativeKeepsReductionsAndExponentials) {
  Graph g("conservative");
  const Value x = g.input("x", f32({4, 8}));
  g.set_outputs({softmax(exp(tanh(x)))});
  const Graph m = mixed(g, PrecisionPolicy::auto_mixed_conservative());
  EXPECT_EQ(first_of(m, "tanh").types[0].dtype, DType::F16);
  EXPECT_EQ(first_of(m, "exp").types[0].dtype, DType::F32);
  EXPECT_EQ(first_of(m, "softmax").types[0].dtype, DType::F32);
}

// `log*` speaks of logarithms, not of what someone calls logits.
TEST(RewritePrecision, ListsOfSensitiveOpsDoNotLookAtNames) {
  Graph g("names");
  const Value x = g.input("x", f32({4}));
  g.set_outputs({tanh(x).named("logits"), log(x).named("tanh")});
  const Graph m = mixed(g, PrecisionPolicy::auto_mixed_conservative());
  EXPECT_EQ(first_of(m, "tanh").types[0].dtype, DType::F16);
  EXPECT_EQ(first_of(m, "log").types[0].dtype, DType::F32);
}

TEST(RewritePrecision, TheLastRuleThatMatchesHolds) {
  Graph g("rules");
  const Value x = g.input("x", f32({4, 4}));
  const Value a = tanh(x).named("first_layer");
  const Value b = tanh(a).named("second_layer");
  g.set_outputs({b});
  PrecisionPolicy policy = PrecisionPolicy::auto_mixed();
  policy.rules = {{"*_layer", DType::F32}, {"second*", DType::BF16}};
  const Graph m = mixed(g, policy);
  EXPECT_EQ(m.node(m.find_or_throw("x")).types[0].dtype, DType::F32);
  EXPECT_EQ(first_of(m, "tanh").types[0].dtype, DType::F32);
  EXPECT_EQ(m.type(m.node(m.outputs()[0].node).operands[0]).dtype, DType::BF16) << print(m);
}

TEST(RewritePrecision, TwiceIsOnce) {
  Graph g = product();
  const Graph gradient = value_and_grad(mixed(g, PrecisionPolicy::auto_mixed()), {"w"}).graph;
  for (const NamedPolicy& policy : precision_policies()) {
    const Graph once = mixed(gradient, policy.make());
    EXPECT_EQ(auto_mixed_precision(once, policy.make()).graph, once) << policy.name;
  }
}

// The carry of a loop keeps its dtype; what a step does with it changes.
TEST(RewritePrecision, BodiesComputeInItAndKeepTheirSignature) {
  Graph g("loop");
  const Value x = g.input("x", f32({4}));
  const Value w = g.param("w", f32({4, 4}));
  Graph body("body");
  const Value h = body.input("h", f32({4}));
  body.set_outputs({tanh(sum(body.input("w", f32({4, 4})) * h, {1}))});
  g.set_outputs(scan(std::vector{x}, {.bcasts = {w}, .length = 3}, body));
  const Graph m = mixed(g, PrecisionPolicy::auto_mixed_bf16());
  const Node& loop = first_of(m, "scan");
  EXPECT_EQ(first_of(*loop.bodies[0].graph, "tanh").types[0].dtype, DType::BF16);
  const Feeds feeds{{"x", random_tensor(1, f32({4}), -1, 1)},
                    {"w", random_tensor(2, f32({4, 4}), -1, 1)}};
  const Tensor expected = interpret(g, feeds)[0];
  const Tensor actual = interpret(m, feeds)[0];
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(actual.numbers<double>()[static_cast<std::size_t>(i)],
                expected.numbers<double>()[static_cast<std::size_t>(i)], 0.03);
  }
}

// [amp-training] A param that a loop reads is cast once, before it.
TEST(RewritePrecision, CastsOfParamsLeaveLoops) {
  Graph g("loop");
  const Value x = g.input("x", f32({2, 4}));
  const Value w = g.param("w", f32({4, 4}));
  Graph body("body");
  const Value h = body.input("h", f32({2, 4}));
  body.set_outputs({tanh(matmul(h, body.input("w", f32({4, 4}))))});
  g.set_outputs(scan(std::vector{x}, {.bcasts = {w}, .length = 50}, body));
  const auto casts_of_w = [](const Graph& graph) {
    std::size_t count = 0;
    for (const Node& node : graph.nodes()) {
      count += node.op.is<op::Cast>() && node.types[0].dims == Dims{4, 4} ? 1 : 0;
    }
    return count;
  };
  const Graph m = mixed(g, PrecisionPolicy::auto_mixed_bf16());
  EXPECT_EQ(casts_of_w(*first_of(m, "scan").bodies[0].graph), 1U);
  const Graph ready = prepare_for_device(m);
  EXPECT_EQ(casts_of_w(ready), 1U) << print(ready);
  EXPECT_EQ(casts_of_w(*first_of(ready, "scan").bodies[0].graph), 0U) << print(ready);
}

// A training step as one graph: what reaches the optimiser is in bf16, what it does is not.
TEST(RewritePrecision, NextValuesOfParamsAreMadeInF32) {
  Graph loss("step");
  const Value x = loss.input("x", f32({3, 4}));
  loss.set_outputs({sum(square(tanh(matmul(x, loss.param("w", f32({4, 2}))))), {0, 1})});
  Graph g = value_and_grad(loss, {"w"}).graph;
  const std::vector<Value> made = g.output_values();
  const AdamW settings;
  const Value count = g.param("count", f32({})) + 1.0;
  const OptimizerStep step = next_step(settings, count, filled(g, f32({}), 1e-3));
  const Value w = g.value({g.find_or_throw("w"), 0});
  const OptimizerUpdate next =
      updated(settings, {w, {g.param("m", w.type()), g.param("v", w.type())}}, made[1], step);
  g.set_outputs({made[0], count, next.param, next.state[0], next.state[1]});

  for (const PrecisionPolicy& policy :
       {PrecisionPolicy::auto_mixed_bf16(), PrecisionPolicy::always_f16()}) {
    const Graph m = mixed(g, policy);
    EXPECT_EQ(first_of(m, "matmul").types[0].dtype, policy.compute);
    EXPECT_EQ(first_of(m, "tanh").types[0].dtype, policy.compute);
    // A second moment that is not to grow decays by 0.999, which bf16 does not hold.
    Feeds feeds{{"x", Tensor::zeros(f32({3, 4}))},
                {"w", random_tensor(1, f32({4, 2}), -1, 1)},
                {"m", Tensor::zeros(f32({4, 2}))},
                {"v", Tensor::splat(f32({4, 2}), 1)},
                {"count", Tensor::splat(f32({}), 4096)}};
    const std::vector<Tensor> exact = interpret(g, feeds);
    const std::vector<Tensor> actual = interpret(m, feeds);
    for (std::size_t k = 1; k < exact.size(); ++k) {
      EXPECT_EQ(actual[k].numbers<double>(), exact[k].numbers<double>()) << k;
    }
    EXPECT_NEAR(actual[4].numbers<double>()[0], 0.999, 1e-6);
  }
}

// A rule that names it is obeyed; and what ends in no param is nobody's state.
TEST(RewritePrecision, AverageOfAParamIsInWhatARuleSays) {
  Graph g("average");
  const Value kept = g.param("kept", f32({4}));
  const Value x = g.input("x", f32({4}));
  g.set_outputs({(kept * 0.99 + x * 0.01).named("next"), exp(x)});
  const Graph m = mixed(g, PrecisionPolicy::auto_mixed_bf16());
  EXPECT_EQ(first_of(m, "add").types[0].dtype, DType::F32) << print(m);
  EXPECT_EQ(first_of(m, "mul").types[0].dtype, DType::F32) << print(m);
  EXPECT_EQ(first_of(m, "exp").types[0].dtype, DType::BF16);
  PrecisionPolicy policy = PrecisionPolicy::auto_mixed_bf16();
  policy.rules = {{"next", DType::BF16}};
  EXPECT_EQ(first_of(mixed(g, policy), "add").types[0].dtype, DType::BF16);
}

TEST(RewritePrecision, OpsThatDoNotTakeItStayInF32) {
  Graph g("solve");
  const Value a = g.input("a", f32({3, 3}));
  const Value b = g.input("b", f32({3}));
  g.set_outputs({dense_solve(a, b)});
  const Graph m = mixed(g, PrecisionPolicy::auto_mixed());
  EXPECT_EQ(m, g);
}

// The log-sum-exp is f32 whatever the rest is: its reader takes it as it is.
TEST(RewritePrecision, GradientsOfAttentionAreInItAndStatisticsStay) {
  Graph g("attention");
  const Value q = g.input("q", f32({2, 6, 8}));
  const Value y = attention(q, q, q, {.num_heads = 2, .head_dim = 4});
  g.set_outputs({reduce(square(y), {.op = ReduceKind::Sum, .axes = {0, 1, 2}})});
  const Graph made = mixed(grad(g, {"q"}).graph, PrecisionPolicy::auto_mixed_bf16());
  const Node& backward = first_of(made, "attention_backward");
  ASSERT_EQ(backward.operands.size(), 5U) << print(made);
  for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(made.type(backward.operands[k]).dtype, DType::BF16);
  EXPECT_EQ(made.type(backward.operands[4]).dtype, DType::F32);
}

TEST(RewritePrecision, RefusesOtherDtypes) {
  PrecisionPolicy policy;
  policy.compute = DType::I8;
  try {
    (void)auto_mixed_precision(product(), policy);
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("f32, f16 or bf16"), std::string::npos) << e.what();
  }
  EXPECT_THROW((void)precision_policy_named("auto_mixed_bf61"), UserError);
}

}  // namespace
}  // namespace ricci::testing::rewrite_precision_test
