// Derivatives and batching of control flow: what holds besides the op's own cases.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "ops/control_bodies.h"
#include "support/compare.h"

namespace ricci::testing::transform_control_test {
namespace {

std::size_t whole_size(const Graph& graph) {
  std::size_t total = graph.size();
  for (const Node& node : graph.nodes()) {
    for (const Body& body : node.bodies) total += whole_size(*body.graph);
  }
  return total;
}

template <class T>
std::size_t count_ops(const Graph& graph) {
  std::size_t total = 0;
  for (const Node& node : graph.nodes()) total += node.op.is<T>() ? 1 : 0;
  return total;
}

// h ← tanh(h·w + x_t), and the sum of all h.
Graph recurrence(const Dim& length, std::int64_t checkpoints, bool reversed = false) {
  Graph g("recurrence");
  const Value h = g.input("h", f64({2}));
  const Value w = g.input("w", f64({2}));
  const Value x = g.input("x", f64({length, 2}));
  const Values out = scan(
      std::array{h}, {.bcasts = {w}, .xs = {x}, .checkpoints = checkpoints, .reverse = reversed},
      [](Graph&, Inputs in) {
        const Value next = tanh(in[0] * in[1] + in[2]);
        return Values{next, sum(next)};
      });
  g.set_outputs({sum(out[0] * out[0]) + sum(out[1])});
  return g;
}

Feeds recurrence_feeds(std::int64_t length) {
  return {{"h", random_tensor(1, f64({2}), -1, 1)},
          {"w", random_tensor(2, f64({2}), -1, 1)},
          {"x", random_tensor(3, f64({length, 2}), -1, 1)}};
}

// [loops-no-unroll]
TEST(TransformControl, GradientsOfLoopsDoNotGrowWithTheirLength) {
  const auto sizes = [](std::int64_t length) {
    const Graph g = recurrence(length, length / 5);
    const Graph first = value_and_grad(g, {"h", "w", "x"}).graph;
    Graph again = first;
    again.set_outputs(std::vector{first.outputs()[1]});
    const Graph second =
        grad(again, {"w"}, {.zero_missing_wrt = true, .external_seed = true}).graph;
    const Graph over = vmap(first, {{"x"}}, 4).graph;
    const Graph forward = jvp(first, {"w"}).graph;
    return std::vector{whole_size(first), whole_size(second), whole_size(over),
                       whole_size(forward)};
  };
  EXPECT_EQ(sizes(10), sizes(100000));
}

// [scan-single-sweep]
TEST(TransformControl, OneSweepGivesAllGradientsOfAScan) {
  const Graph g = value_and_grad(recurrence(6, 0), {"h", "w", "x"}).graph;
  EXPECT_EQ(count_ops<op::ScanBackward>(g), 1U);
  EXPECT_EQ(count_ops<op::Scan>(g), 1U);
}

// [scan-ckpt-forward-value]
TEST(TransformControl, CheckpointsChangeNoValueAndNoGradient) {
  for (const bool reversed : {false, true}) {
    const Feeds feeds = recurrence_feeds(7);
    const auto plain =
        interpret(value_and_grad(recurrence(7, 0, reversed), {"h", "w", "x"}).graph, feeds);
    for (const std::int64_t kept : {1, 2, 3, 6, 7}) {
      SCOPED_TRACE(kept);
      const auto thin =
          interpret(value_and_grad(recurrence(7, kept, reversed), {"h", "w", "x"}).graph, feeds);
      for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(same(thin[i], plain[i]));
    }
  }
}

TEST(TransformControl, ScansAreDifferentiatedTwiceInReverse) {
  for (const std::int64_t kept : {0, 2, 3}) {
    SCOPED_TRACE(kept);
    const DerivativeReport report =
        check_derivatives(recurrence(6, kept), {"h", "w", "x"}, recurrence_feeds(6), {.order = 2});
    EXPECT_TRUE(report.ok()) << report.to_string();
  }
}

// Reverse over reverse against forward over reverse.
TEST(TransformControl, HessiansOfScansAgree) {
  const Graph g = recurrence(4, 2);
  const Feeds feeds = recurrence_feeds(4);
  const Tensor forward_over = interpret(hessian(g, {"w"}).graph, feeds)[0];
  Graph gradient = grad(g, {"w"}, {.external_seed = true}).graph;
  Feeds more = feeds;
  more["d_output"] = Tensor::splat(f64({}), 1.0);
  const Tensor reverse_over = interpret(jacrev(gradient, {"w"}).graph, more)[0];
  EXPECT_TRUE(close(reverse_over, forward_over));
}

TEST(TransformControl, PerExampleGradientsOfAScan) {
  const Graph g = value_and_grad(recurrence(5, 2), {"h", "w"}).graph;
  const Graph over = vmap(g, {{"x"}}, 3).graph;
  verify(over);
  Feeds feeds = recurrence_feeds(5);
  const Tensor rows = random_tensor(9, f64({3, 5, 2}), -1, 1);
  feeds["x"] = rows;
  const auto all = interpret(over, feeds);
  for (std::int64_t e = 0; e < 3; ++e) {
    feeds["x"] = rows.narrowed(0, e, 1).reshaped({5, 2});
    const auto alone = interpret(g, feeds);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(same(all[i].narrowed(0, e, 1).reshaped(alone[i].dims()), alone[i]));
    }
  }
  // A sweep that recomputes stays one. [scan-vmap]
  EXPECT_EQ(count_ops<op::ScanBackward>(over), 1U);
}

// x² whose gradient is said to be that of x³, inside a scan.
TEST(TransformControl, HessianProductsSeeCustomGradientsInsideScans) {
  Graph g("custom");
  const Value x = g.input("x", f64({}));
  const auto step = [](Graph&, Inputs in) {
    return Values{custom_fn(in, [](Graph&, Inputs c) { return Values{c[0] * c[0]}; },
                            {.vjp = [](Graph&, const VjpInputs& v) {
                              return Values{v.d_outputs[0] * v.primals[0] * v.primals[0] * 3.0};
                            }})};
  };
  g.set_outputs({scan(x, step, 1)});
  const Feeds feeds{{"x", Tensor::splat(f64({}), 2.0)}, {"tangent_x", Tensor::splat(f64({}), 1.0)}};
  const auto out = interpret(hvp(g, {"x"}).graph, feeds);
  EXPECT_DOUBLE_EQ(out[0].item(), 4);
  EXPECT_DOUBLE_EQ(out[1].item(), 12);  // 3x²
  EXPECT_DOUBLE_EQ(out[3].item(), 12);  // 6x
}

// x ← x²·w while x < 3, at most 50 times: from 1.1 it stops long before it overflows.
Graph growing() {
  Graph g("growing");
  const Value x = g.input("x", f64({}));
  const Value w = g.input("w", f64({}));
  const auto loop = while_loop(
      std::array{x, w}, [](Graph&, Inputs in) { return Values{lt(in[0], scalar_like(in[0], 3))}; },
      [](Graph&, Inputs in) { return Values{exp(in[0] * in[0] * in[1]), in[1]}; },
      {.max_iterations = 50});
  g.set_outputs({loop.carries[0]});
  return g;
}

Graph unrolled(int trips) {
  Graph g("unrolled");
  Value x = g.input("x", f64({}));
  const Value w = g.input("w", f64({}));
  for (int t = 0; t < trips; ++t) x = exp(x * x * w);
  g.set_outputs({x});
  return g;
}

// [while-cond-honoured]
TEST(TransformControl, GradientsOfAWhileAreThoseOfTheTripsItMade) {
  const Graph whole = growing();
  for (const double start : {0.5, 1.1, 2.0, 30.0}) {
    const Feeds feeds{{"x", Tensor::splat(f64({}), start)}, {"w", Tensor::splat(f64({}), 0.6)}};
    int trips = 0;
    for (double x = start; x < 3 && trips < 50; ++trips) x = std::exp(x * x * 0.6);
    SCOPED_TRACE(trips);
    const auto loop =
        interpret(value_and_grad(whole, {"x", "w"}, GradOptions::training()).graph, feeds);
    const auto straight = interpret(
        value_and_grad(unrolled(trips), {"x", "w"}, GradOptions::training()).graph, feeds);
    for (std::size_t i = 0; i < straight.size(); ++i) {
      EXPECT_TRUE(close(loop[i], straight[i]));
      EXPECT_TRUE(std::isfinite(loop[i].item()));
    }
  }
}

TEST(TransformControl, WhilesAreDifferentiatedTwiceWithoutTripsTheyDidNotMake) {
  const Feeds feeds{{"x", Tensor::splat(f64({}), 1.1)}, {"w", Tensor::splat(f64({}), 0.6)}};
  const DerivativeReport report = check_derivatives(growing(), {"x", "w"}, feeds, {.order = 2});
  EXPECT_TRUE(report.ok()) << report.to_string();
}

// The second trip of an example that made only one would overflow, in value and derivative.
TEST(TransformControl, ExamplesOfABatchedWhileStopOnTheirOwn) {
  const Graph over = vmap(growing(), {{"x"}}, 4).graph;
  verify(over);
  const Type four = f64({4});
  Feeds feeds{{"x", Tensor::from_numbers<double>(four, std::vector{0.5, 1.1, 2.0, 30.0})},
              {"w", Tensor::splat(f64({}), 0.6)}};
  const auto all =
      interpret(value_and_grad(over, {"x", "w"}, GradOptions::training()).graph, feeds);
  double dw = 0;
  for (std::int64_t e = 0; e < 4; ++e) {
    const Feeds one{{"x", feeds.at("x").narrowed(0, e, 1).reshaped({})}, {"w", feeds.at("w")}};
    const auto alone =
        interpret(value_and_grad(growing(), {"x", "w"}, GradOptions::training()).graph, one);
    EXPECT_TRUE(same(all[0].narrowed(0, e, 1).reshaped({}), alone[0]));
    EXPECT_TRUE(close(all[1].narrowed(0, e, 1).reshaped({}), alone[1]));
    dw += alone[2].item();
  }
  EXPECT_NEAR(all[2].item(), dw, 1e-9 * std::fabs(dw));
}

TEST(TransformControl, AWhileWithoutABoundHasNoReverseMode) {
  Graph g("unbounded");
  const Value x = g.input("x", f64({}));
  const auto loop = while_loop(
      std::array{x}, [](Graph&, Inputs in) { return Values{lt(in[0], scalar_like(in[0], 3))}; },
      [](Graph&, Inputs in) { return Values{in[0] * 2.0}; });
  g.set_outputs({loop.carries[0]});
  try {
    (void)grad(g, {"x"});
    ADD_FAILURE() << "was differentiated";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::UnboundedLoop);
    EXPECT_NE(std::string(e.what()).find("max_iterations"), std::string::npos) << e.what();
  }
  const auto out = interpret(jvp(g, {"x"}).graph, {{"x", Tensor::splat(f64({}), 1.0)},
                                                   {"tangent_x", Tensor::splat(f64({}), 1.0)}});
  EXPECT_DOUBLE_EQ(out[1].item(), 4);
}

// √x where x > 0, and 0·x elsewhere: at 0 the derivative of the root is infinite.
Graph guarded_root() {
  Graph g("guarded");
  const Value x = g.input("x", f64({}));
  const Values out = cond(
      gt(x, scalar_like(x, 0)), std::array{x}, [](Graph&, Inputs in) { return Values{log(in[0])}; },
      [](Graph&, Inputs in) { return Values{in[0] * 2.0}; });
  g.set_outputs({out[0]});
  return g;
}

// [if-ad] [if-lazy]
TEST(TransformControl, ABranchNotTakenLeavesNoTraceInDerivatives) {
  const Graph g = value_and_grad(guarded_root(), {"x"}).graph;
  EXPECT_EQ(count_ops<op::If>(g), 2U);
  EXPECT_EQ(interpret(g, {{"x", Tensor::splat(f64({}), 0.0)}})[1].item(), 2);
  EXPECT_EQ(interpret(g, {{"x", Tensor::splat(f64({}), 4.0)}})[1].item(), 0.25);

  const Graph over = value_and_grad(vmap(guarded_root(), {{"x"}}, 3).graph, {"x"}).graph;
  const Tensor xs = Tensor::from_numbers<double>(f64({3}), std::vector{0.0, 4.0, -1.0});
  const Tensor expected = Tensor::from_numbers<double>(f64({3}), std::vector{2.0, 0.25, 2.0});
  EXPECT_TRUE(same(interpret(over, {{"x", xs}})[1], expected));
  const Tensor none = Tensor::from_numbers<double>(f64({3}), std::vector{0.0, 0.0, -1.0});
  EXPECT_TRUE(same(interpret(over, {{"x", none}})[1], Tensor::splat(f64({3}), 2.0)));
}

// [scan-save-policy]
TEST(TransformControl, BudgetsChooseHowManyCarriesAreKept) {
  const std::vector<Type> carry{f32({25})};  // 100 bytes a row
  EXPECT_EQ(checkpoints_for_budget(carry, 1000, 100'000), 0);
  const std::int64_t kept = checkpoints_for_budget(carry, 1000, 20'000);
  EXPECT_LE(kept + (1000 + kept - 1) / kept, 200);
  EXPECT_GT(kept + 1 + (1000 + kept) / (kept + 1), 200);
  EXPECT_EQ(checkpoints_for_budget(carry, 1000, 100), 31);
  EXPECT_EQ(checkpoints_for_budget(carry, 0, 0), 0);
  EXPECT_THROW((void)checkpoints_for_budget(std::vector{f32({Dim::symbol("n")})}, 4, 8), UserError);
}

// Each carry becomes the next one, and the last the sine of itself: the way from the first to the
// last takes as many steps as there are carries. Looking at all pairs of carries, step by step,
// would take the cube of their number.
Graph shift_register(std::int64_t carries) {
  Graph g("shift");
  std::vector<Value> start;
  for (std::int64_t k = 0; k < carries; ++k) {
    start.push_back(g.input("x" + std::to_string(k), f64({})));
  }
  const auto out = scan(start, {.length = 3}, [](Graph&, Inputs in) {
    Values next(in.begin(), in.end());
    next.back() = sin(in.back());
    for (std::size_t k = 1; k < in.size(); ++k) next[k - 1] = in[k];
    return next;
  });
  g.set_outputs({out[0]});
  return g;
}

TEST(TransformControl, GradientsOfLoopsWithManyCarriesReachThoseThatMatter) {
  // The first value in the end is the fourth at first.
  const Transformed few = grad(shift_register(5), {"x3"}, {.external_seed = true});
  Feeds feeds;
  for (int k = 0; k < 5; ++k) feeds["x" + std::to_string(k)] = Tensor::of<double>({}, {0.5});
  feeds[few.names.at("d_output")] = Tensor::of<double>({}, {1});
  EXPECT_EQ(interpret(few.graph, feeds)[0].item(), 1);
  const Transformed many =
      grad(shift_register(3000), {"x2999"}, {.zero_missing_wrt = true, .external_seed = true});
  verify(many.graph);
  EXPECT_EQ(many.graph.outputs().size(), 1U);
}

}  // namespace
}  // namespace ricci::testing::transform_control_test
