// Loops and branches as they run: early exit, nesting, laziness.
#include <atomic>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/eval.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"

#include "support/compare.h"

namespace ricci::testing::control_loop_test {
namespace {

using Inputs = std::span<const Value>;
using Values = std::vector<Value>;

// Gives its operand back and counts how often it ran.
class Counting final : public CustomOp {
 public:
  [[nodiscard]] std::string name() const override { return "count_runs"; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes&) const override {
    return {operands[0]};
  }
  void eval(const Bytes&, EvalContext& c) const override {
    ++runs;
    c.give(0, c.tensor(0));
  }
  mutable std::atomic<int> runs = 0;
};

// Verifies the graph, sends it through its text form and runs it.
std::vector<Tensor> run(const Graph& graph, const Feeds& feeds) {
  verify(graph);
  const std::string text = print(graph);
  const Graph again = parse_graph(text, {.registry = &graph.registry()});
  EXPECT_TRUE(again == graph) << text;
  EXPECT_EQ(print(again), text);
  return interpret(graph, feeds);
}

// [if-lazy]
TEST(ControlFlow, IfRunsOneBranchOnly) {
  Registry registry;
  const auto counting = std::make_shared<Counting>();
  registry.add(counting);
  Graph g("lazy", registry);
  const Value p = g.input("p", boolean());
  const Value x = g.input("x", f32({2}));
  g.set_outputs(cond(
      p, std::array{x},
      [](Graph&, Inputs in) { return custom_op("count_runs", {}, std::array{in[0]}); },
      [](Graph&, Inputs in) { return Values{-in[0]}; }));
  const Tensor value = Tensor::of<float>({2}, {1, 2});
  auto out = run(g, {{"p", Tensor::of<bool>({}, {false})}, {"x", value}});
  EXPECT_TRUE(same(out[0], Tensor::of<float>({2}, {-1, -2})));
  EXPECT_EQ(counting->runs, 0);
  out = run(g, {{"p", Tensor::of<bool>({}, {true})}, {"x", value}});
  EXPECT_TRUE(same(out[0], value));
  EXPECT_EQ(counting->runs, 1);
}

// [while-native] The cost is that of the trips made, not of max_iterations.
TEST(ControlFlow, WhileExitsEarly) {
  Registry registry;
  const auto counting = std::make_shared<Counting>();
  registry.add(counting);
  for (const int limit : {0, 3, 7, 12}) {
    counting->runs = 0;
    Graph g("loop", registry);
    const Value n = g.input("n", i32());
    const Value top = g.input("top", i32());
    const WhileResult loop = while_loop(
        std::array{n, top}, [](Graph&, Inputs in) { return Values{lt(in[0], in[1])}; },
        [](Graph&, Inputs in) {
          const Value once = custom_op("count_runs", {}, std::array{in[0]})[0];
          return Values{once + scalar_like(once, 1), in[1]};
        },
        {.max_iterations = 10, .trip_count = true});
    g.set_outputs({loop.carries[0], loop.trip_count});
    const auto out = run(g, {{"n", Tensor::splat(i32(), 0)}, {"top", Tensor::splat(i32(), limit)}});
    const int expected = std::min(limit, 10);
    EXPECT_EQ(out[0].item(), expected);
    EXPECT_EQ(out[1].item(), expected);
    EXPECT_EQ(counting->runs, expected);
  }
}

TEST(ControlFlow, TapedWhileKeepsCarriesEnteringEachTrip) {
  Graph g("taped");
  const Value x = g.input("x", f64());
  const WhileResult loop = while_taped(
      std::array{x}, [](Graph&, Inputs in) { return Values{lt(in[0], scalar_like(in[0], 10))}; },
      [](Graph&, Inputs in) { return Values{in[0] * 2.0}; }, 6);
  g.set_outputs({loop.carries[0], loop.trip_count, loop.tapes[0]});
  const auto out = run(g, {{"x", Tensor::splat(f64(), 1.0)}});
  EXPECT_EQ(out[0].item(), 16);
  EXPECT_EQ(out[1].item(), 4);
  EXPECT_TRUE(same(out[2], Tensor::of<double>({6}, {1, 2, 4, 8, 0, 0})));
}

TEST(ControlFlow, TapesNeedABound) {
  Graph g("unbounded");
  const Value x = g.input("x", f64());
  const auto same_value = [](Graph&, Inputs in) { return Values{in[0]}; };
  try {
    (void)while_loop(std::array{x}, same_value, same_value, {.tapes = true});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::UnboundedLoop);
  }
}

// x ↦ x + 1, as a custom function, a branch, a loop and a scan inside a scan.
Value step_by(const std::string& how, Value x) {
  if (how == "custom_fn") {
    return custom_fn(std::array{x}, [](Graph&, Inputs in) { return Values{in[0] + 1.0}; });
  }
  if (how == "if") {
    const Value positive = gt(sum(x), scalar_like(x, -100));
    return cond(
        positive, std::array{x}, [](Graph&, Inputs in) { return Values{in[0] + 1.0}; },
        [](Graph&, Inputs in) { return Values{in[0] * 0.0}; })[0];
  }
  if (how == "while") {
    const Value n = x.graph().constant(Tensor::splat(i32(), 0));
    return while_loop(
               std::array{x, n},
               [](Graph&, Inputs in) { return Values{lt(in[1], scalar_like(in[1], 2))}; },
               [](Graph&, Inputs in) { return Values{in[0] + 0.5, in[1] + scalar_like(in[1], 1)}; })
        .carries[0];
  }
  return scan(x, [](Graph&, Inputs in) { return Values{in[0] + 0.25}; }, 4);
}

TEST(ControlFlow, NestsInsideAScan) {
  for (const std::string how : {"custom_fn", "if", "while", "scan"}) {
    SCOPED_TRACE(how);
    Graph g("nested");
    const Value x = g.input("x", f32({2}));
    const auto body = [&](Graph&, Inputs in) { return Values{step_by(how, in[0])}; };
    g.set_outputs({scan(x, body, 3), scan_trajectory(x, body, 2)});
    const auto out = run(g, {{"x", Tensor::of<float>({2}, {1, -5})}});
    EXPECT_TRUE(same(out[0], Tensor::of<float>({2}, {4, -2})));
    EXPECT_TRUE(same(out[1], Tensor::of<float>({2, 2}, {2, -4, 3, -3})));
  }
}

// [scan-general-builder] [scan-ckpt-forward-value]
TEST(ControlFlow, ScanBuilders) {
  Graph g("scans");
  const Value c = g.input("c", f64({1}));
  const Value w = g.input("w", f64({1}));
  const Value x = g.input("x", f64({4, 1}));
  const auto add_row = [](Graph&, Inputs in) { return Values{in[0] + in[1]}; };
  const auto weighed = [](Graph&, Inputs in) { return Values{in[0] * in[1] + in[2]}; };
  const auto twice = [](Graph&, Inputs in) { return Values{in[0] * 2.0}; };
  g.set_outputs(
      {scan_with_xs(c, std::array{x}, add_row, 4),
       scan_with_bcasts_and_xs(c, std::array{w}, std::array{x}, weighed, 4),
       scan_checkpointed(c, twice, 4, 2),
       scan(std::array{c}, {.xs = {x}, .trajectory = true, .checkpoints = 3}, add_row)[0]});
  const auto out = run(g, {{"c", Tensor::of<double>({1}, {1})},
                           {"w", Tensor::of<double>({1}, {2})},
                           {"x", Tensor::of<double>({4, 1}, {1, 2, 3, 4})}});
  EXPECT_EQ(out[0].item(), 11);
  EXPECT_EQ(out[1].item(), 42);
  EXPECT_EQ(out[2].item(), 16);
  // What a gradient keeps does not shorten a trajectory.
  EXPECT_TRUE(same(out[3], Tensor::of<double>({4, 1}, {2, 4, 7, 11})));
  EXPECT_THROW((void)scan_checkpointed(c, twice, 4, 0), UserError);
  EXPECT_THROW((void)scan_checkpointed(c, twice, 4, 5), UserError);
}

TEST(ControlFlow, EmptyBodiesAreRefused) {
  Graph g("empty");
  const Value c = g.input("c", f64({1}));
  EXPECT_THROW((void)scan(c, BodyFunction(), 4), UserError);
  EXPECT_THROW((void)scan(c, BodyGraph(), 4), UserError);
}

TEST(ControlFlow, OuterValuesAreRefusedInsideFunctionsWithRules) {
  Graph g("outer");
  const Value x = g.input("x", f32({2}));
  EXPECT_NO_THROW((void)scan(x, [&](Graph&, Inputs in) { return Values{in[0] + x}; }, 3));
  try {
    (void)custom_fn(std::array{x}, [&](Graph&, Inputs in) { return Values{in[0] + x}; });
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().full_code(), "name.other_graph");
    EXPECT_NE(e.diagnostic().help.find("hand others in as operands"), std::string::npos);
  }
}

// [body-params]
TEST(ControlFlow, CloseOverTurnsParamsIntoOperands) {
  Graph body("step");
  const Value c = body.input("c", f32({2}));
  const Value x = body.input("x", f32({2}));
  const Value w = body.param("w", f32({2}));
  body.set_outputs({c * w + x});

  Graph g("outer");
  const Value c0 = g.input("c0", f32({2}));
  const Value xs = g.input("xs", f32({3, 2}));
  EXPECT_THROW((void)scan(std::array{c0}, {.xs = {xs}}, body), UserError);
  const ClosedBody closed = close_over(body, 1);
  EXPECT_EQ(closed.captured, std::vector<std::string>{"w"});
  g.set_outputs(
      scan(std::array{c0}, {.bcasts = captured_params(g, closed), .xs = {xs}}, closed.graph));
  EXPECT_EQ(g.params().size(), 1U);
  EXPECT_EQ(captured_params(g, closed)[0].id(), (ValueId{g.params()[0], 0}));
  const auto out = run(g, {{"c0", Tensor::of<float>({2}, {1, 1})},
                           {"xs", Tensor::of<float>({3, 2}, {1, 2, 1, 2, 1, 2})},
                           {"w", Tensor::of<float>({2}, {2, 0})}});
  EXPECT_TRUE(same(out[0], Tensor::of<float>({2}, {15, 2})));
}

}  // namespace
}  // namespace ricci::testing::control_loop_test
