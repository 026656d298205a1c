// What is zero is absent: where a derivative does not arrive, nothing is computed and nothing is
// multiplied by it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/op/control.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jet.h"
#include "ricci/transform/jvp.h"

#include "support/compare.h"

namespace ricci::testing::transform_absent_test {
namespace {

using Inputs = std::span<const Value>;
using Values = std::vector<Value>;

constexpr double Inf = std::numeric_limits<double>::infinity();

template <class T>
std::size_t count_of(const Graph& graph) {
  return static_cast<std::size_t>(
      std::ranges::count_if(graph.nodes(), [](const Node& node) { return node.op.is<T>(); }));
}

Tensor scalar(double v) { return Tensor::splat(f64(), v); }

// A loop of two steps whose result is a constant, whatever it starts from.
Value constant_loop(Value x) {
  return scan(
      x, [](Graph& g, Inputs in) { return Values{g.constant(Tensor::splat(in[0].type(), 2.0))}; },
      2);
}

TEST(AbsentDerivatives, OfABranchThatGivesAConstantLoop) {
  Graph g("branch");
  const Value x = g.input("x", f64({3}));
  const Value taken = g.input("taken", boolean());
  g.set_outputs({cond(
      taken, std::array{x}, [](Graph&, Inputs in) { return Values{constant_loop(in[0])}; },
      [](Graph& body, Inputs in) {
        return Values{body.constant(Tensor::splat(in[0].type(), 5.0))};
      })[0]});
  const Transformed t = jvp(g, {"x"});
  verify(t.graph);
  const Tensor ones = Tensor::splat(f64({3}), 1.0);
  for (const double choice : {0.0, 1.0}) {
    const auto out = interpret(t.graph, {{"x", ones},
                                         {"taken", Tensor::splat(boolean(), choice)},
                                         {t.names.at("tangent_x"), ones}});
    EXPECT_TRUE(same(out[1], Tensor::splat(f64({3}), 0.0)));
  }
}

TEST(AbsentDerivatives, OfALoopOfConstantLoopsUpToTheThirdOrder) {
  Graph g("loops");
  const Value x = g.input("x", f64({4}));
  const Value k = g.input("k", f64({4}));
  const Value out = scan_with_bcasts_and_xs(
      x, std::array{k}, {},
      [](Graph&, Inputs in) {
        const Value inner = scan_with_bcasts_and_xs(
            in[0], std::array{in[1]}, {}, [](Graph&, Inputs i) { return Values{i[1]}; }, 3);
        return Values{inner * in[0] + inner};
      },
      2);
  g.set_outputs({out});
  const Transformed curve = jet(g, {"x"}, 3, {.line = true});
  verify(curve.graph);
  Graph nested = g;
  Feeds feeds{{"x", Tensor::splat(f64({4}), 0.5)}, {"k", Tensor::splat(f64({4}), 3.0)}};
  Feeds line = feeds;
  line[curve.names.at("d1_x")] = Tensor::splat(f64({4}), 1.0);
  for (int order = 0; order < 3; ++order) {
    const Transformed next = jvp(nested, {"x"});
    verify(next.graph);
    nested = next.graph;
    feeds[next.names.at("tangent_x")] = Tensor::splat(f64({4}), 1.0);
  }
  // 9·x + 12
  const auto by_series = interpret(curve.graph, line);
  EXPECT_TRUE(same(by_series[0], Tensor::splat(f64({4}), 16.5)));
  EXPECT_TRUE(same(by_series[1], Tensor::splat(f64({4}), 9.0)));
  EXPECT_TRUE(same(by_series[3], Tensor::splat(f64({4}), 0.0)));
  const auto by_nesting = interpret(nested, feeds);
  EXPECT_TRUE(same(by_nesting[1], Tensor::splat(f64({4}), 9.0)));
  EXPECT_TRUE(same(by_nesting[7], Tensor::splat(f64({4}), 0.0)));
}

// x/y, where the slope by x is infinite for y = 0.
Graph quotient(bool with_vjp) {
  Graph g("quotient");
  const Value x = g.input("x", f64());
  const Value y = g.input("y", f64());
  CustomFnRules rules;
  rules.jvp = [](Graph&, const JvpInputs& in) {
    return Values{in.tangents[0] / in.primals[1] + in.tangents[1] * 3.0, -in.tangents[0]};
  };
  if (with_vjp) {
    rules.vjp = [](Graph&, const VjpInputs& in) {
      const Value dx = in.d_outputs[0] / in.primals[1];
      return Values{dx - in.d_outputs[1], in.d_outputs[0] * 3.0};
    };
  }
  const auto handle = custom_fn_multi(
      std::array{x, y}, [](Graph&, Inputs in) { return Values{in[0] + in[1], -in[0]}; }, rules);
  g.set_outputs({handle.output(g, 0), handle.output(g, 1)});
  return g;
}

TEST(AbsentDerivatives, AreNoFactorsInACustomFunctionsForwardRule) {
  const Transformed t = jvp(quotient(false), {"y"});
  const auto out = interpret(
      t.graph, {{"x", scalar(1)}, {"y", scalar(0)}, {t.names.at("tangent_y"), scalar(2)}});
  EXPECT_EQ(out[2].item(), 6);
  EXPECT_EQ(out[3].item(), 0);
}

TEST(AbsentDerivatives, AreNoFactorsInACustomFunctionsReverseRule) {
  Graph g = quotient(true);
  g.set_outputs(std::vector<ValueId>{g.outputs()[1]});  // the one whose cotangent meets no 1/y
  const Transformed t = value_and_grad(g, {"x"});
  EXPECT_EQ(interpret(t.graph, {{"x", scalar(1)}, {"y", scalar(0)}})[1].item(), -1);
}

// A rule that is not linear sees zeros: what it makes of them is its own.
TEST(AbsentDerivatives, AreZerosToWhatIsNotLinear) {
  Graph g("shifted");
  const Value x = g.input("x", f64());
  const Value y = g.input("y", f64());
  CustomFnRules rules;
  rules.jvp = [](Graph&, const JvpInputs& in) {
    return Values{cos(in.tangents[0]) + in.tangents[1]};
  };
  g.set_outputs({custom_fn(
      std::array{x, y}, [](Graph&, Inputs in) { return Values{in[0] * in[1]}; }, rules)});
  const Transformed t = jvp(g, {"y"});
  const auto out = interpret(
      t.graph, {{"x", scalar(Inf)}, {"y", scalar(1)}, {t.names.at("tangent_y"), scalar(2)}});
  EXPECT_EQ(out[1].item(), 3);
}

// h ← h + w·x: no step's gradient reads what the loop had reached.
TEST(AbsentDerivatives, ALoopWhoseGradientReadsNoCarryIsNotRun) {
  for (const std::int64_t checkpoints : {0, 2}) {
    Graph g("sums");
    const Value h = g.input("h", f64({2}));
    const Value w = g.input("w", f64({2}));
    const Value x = g.input("x", f64({6, 2}));
    const Value last = scan(std::array{h}, {.bcasts = {w}, .xs = {x}, .checkpoints = checkpoints},
                            [](Graph&, Inputs in) { return Values{in[0] + in[1] * in[2]}; })[0];
    g.set_outputs({sum(last)});
    const Transformed t = grad(g, {"h", "w", "x"}, {.internal_seed = true});
    verify(t.graph);
    EXPECT_EQ(count_of<op::Scan>(t.graph), 0U);
    EXPECT_EQ(count_of<op::ScanBackward>(t.graph), 1U);
    const Feeds feeds{{"h", random_tensor(1, f64({2}))},
                      {"w", random_tensor(2, f64({2}))},
                      {"x", Tensor::splat(f64({6, 2}), 0.5)}};
    const auto out = interpret(t.graph, feeds);
    EXPECT_TRUE(same(out[0], Tensor::splat(f64({2}), 1.0)));
    EXPECT_TRUE(same(out[1], Tensor::splat(f64({2}), 3.0)));
  }
}

}  // namespace
}  // namespace ricci::testing::transform_absent_test
