// Derivatives of the recurrent ops against central differences, and the structure of their
// loops they stand for.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compat/sequence.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/grad.h"

#include "support/compare.h"
#include "support/derivative.h"

namespace ricci::testing::rule_sequence_test {
namespace {

constexpr Tolerance Close{1e-6, 1e-8};

Tensor numbers(std::uint64_t seed, Dims dims, double low = -1, double high = 1) {
  return random_tensor(seed, f64(std::move(dims)), low, high);
}

struct StateSetting {
  std::string name;
  std::int64_t steps;
  bool initial;
  bool final;
};

class RecurrentGradient : public ::testing::TestWithParam<StateSetting> {
 protected:
  // Every gradient against differences; `backward` takes inputs, (state), cotangent, (its state's).
  static void check(const Op& forward, const Op& backward, std::vector<Tensor> inputs,
                    const Tensor& state, const Tensor& cotangent) {
    const StateSetting& s = GetParam();
    if (s.initial) inputs.push_back(state);
    std::vector<Tensor> cotangents = {cotangent};
    if (s.final) cotangents.push_back(numbers(8, state.type().dims));
    std::vector<Tensor> operands = inputs;
    operands.insert(operands.end(), cotangents.begin(), cotangents.end());
    const auto gradients = run_op(backward, operands, std::vector<bool>(inputs.size(), true));
    ASSERT_EQ(gradients.size(), inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      EXPECT_TRUE(close(gradients[k],
                        central_difference(forward, inputs, {true, s.final}, cotangents, k), Close))
          << "operand " << k;
    }
  }
};

// [ssm-native-grad] [ssm-state-io]
TEST_P(RecurrentGradient, SelectiveScanAgreesWithDifferences) {
  const auto& [name, steps, initial, final] = GetParam();
  check(Op(op::SelectiveScan{4}), Op(op::SelectiveScanBackward{4, initial, final}),
        {numbers(1, {2, steps, 3}), numbers(2, {2, steps, 3}, 0.1, 1), numbers(3, {3, 4}, -1, 0),
         numbers(4, {2, steps, 4}), numbers(5, {2, steps, 4})},
        numbers(6, {2, 3, 4}), numbers(7, {2, steps, 3}));
}

// [gdn-native-grad] [gdn-functional-state]
TEST_P(RecurrentGradient, GatedDeltaNetAgreesWithDifferences) {
  const auto& [name, steps, initial, final] = GetParam();
  check(Op(op::GatedDeltaNet{3, initial}), Op(op::GatedDeltaNetBackward{3, initial, final}),
        {numbers(1, {2, steps, 2, 3}), numbers(2, {2, steps, 2, 3}), numbers(3, {2, steps, 2, 4}),
         numbers(4, {2, steps, 2}, -1, 0), numbers(5, {2, steps, 2}, 0, 1)},
        numbers(6, {2, 2, 3, 4}), numbers(7, {2, steps, 2, 4}));
}

// [gdn-limits]
TEST_P(RecurrentGradient, GroupedHeadsAgreeWithDifferences) {
  const auto& [name, steps, initial, final] = GetParam();
  check(Op(op::GatedDeltaNet{2, initial}), Op(op::GatedDeltaNetBackward{2, initial, final}),
        {numbers(1, {1, steps, 2, 2}), numbers(2, {1, steps, 2, 2}), numbers(3, {1, steps, 4, 3}),
         numbers(4, {1, steps, 4}, -1, 0), numbers(5, {1, steps, 4}, 0, 1)},
        numbers(6, {1, 4, 2, 3}), numbers(7, {1, steps, 4, 3}));
}

INSTANTIATE_TEST_SUITE_P(Settings, RecurrentGradient,
                         ::testing::Values(StateSetting{"plain", 4, false, false},
                                           StateSetting{"from_a_state", 3, true, false},
                                           StateSetting{"to_a_state", 3, false, true},
                                           StateSetting{"between_states", 4, true, true},
                                           StateSetting{"one_step", 1, true, true},
                                           StateSetting{"no_steps", 0, true, true}),
                         [](const auto& s) { return s.param.name; });

// The expansion of a node as a graph from its operands to its results. Operands that are inputs
// keep their names.
Graph expanded(const Graph& from, NodeId id) {
  Graph to("expanded");
  const Node& node = from.node(id);
  std::vector<Value> operands;
  for (const ValueId v : node.operands) {
    const auto* in = from.node(v.node).op.as<op::Input>();
    operands.push_back(to.input(in != nullptr ? in->name : to.unique_name("x"), from.type(v)));
  }
  std::vector<Value> outputs;
  for (const Value& r : expand_node(node, operands, to)) {
    if (r.valid()) outputs.push_back(r);
  }
  to.set_outputs(outputs);
  verify(to);
  return to;
}

struct OpCount {
  std::size_t scans = 0;
  std::size_t rows = 0;     // operands a step sees one row of
  std::size_t stacked = 0;  // results with a row per step
  std::size_t reduce_sum = 0;
  std::size_t exp = 0;
  std::size_t matmul = 0;
};

// Counts what a graph and the bodies of its loops hold.
OpCount count(const Graph& g) {
  OpCount n;
  for (const Node& node : g.nodes()) {
    const auto* unary = node.op.as<op::Unary>();
    const auto* reduction = node.op.as<op::Reduce>();
    n.matmul += node.op.is<op::Matmul>() ? 1 : 0;
    n.exp += unary != nullptr && unary->kind == UnaryKind::Exp ? 1 : 0;
    n.reduce_sum += reduction != nullptr && reduction->op == ReduceKind::Sum ? 1 : 0;
    if (const auto* loop = node.op.as<op::Scan>()) {
      const OpCount inside = count(*node.body("body"));
      n.scans += 1;
      n.rows += static_cast<std::size_t>(loop->num_xs);
      n.stacked += node.types.size() - static_cast<std::size_t>(loop->num_carry);
      n.exp += inside.exp;
      n.reduce_sum += inside.reduce_sum;
      n.matmul += inside.matmul;
    }
  }
  return n;
}

Graph scan_of(const Dim& steps) {
  Graph g("scan");
  const Value x = g.input("x", f64({1, steps, 2}));
  const Value delta = g.input("delta", f64({1, steps, 2}));
  const Value a = g.input("a", f64({2, 4}));
  const Value b = g.input("b", f64({1, steps, 4}));
  const Value c = g.input("c", f64({1, steps, 4}));
  g.set_outputs({selective_scan(x, delta, a, b, c, {.state_size = 4})});
  return g;
}

Graph net_of(const Dim& steps) {
  Graph g("net");
  const Value q = g.input("q", f64({1, steps, 2, 4}));
  const Value k = g.input("k", f64({1, steps, 2, 4}));
  const Value v = g.input("v", f64({1, steps, 2, 3}));
  const Value gate = g.input("gate", f64({1, steps, 2}));
  const Value beta = g.input("beta", f64({1, steps, 2}));
  g.set_outputs({gated_delta_net(q, k, v, gate, beta, {.state_size = 4})});
  return g;
}

Graph expanded_output(const Graph& g) { return expanded(g, g.outputs()[0].node); }

TEST(ExpandedScan, HasOneExpAndOneSumPerStep) {
  const OpCount n = count(expanded_output(scan_of(3)));
  EXPECT_EQ(n.scans, 1U);
  EXPECT_EQ(n.rows, 4U);
  EXPECT_EQ(n.stacked, 1U);
  EXPECT_EQ(n.reduce_sum, 1U);
  EXPECT_EQ(n.exp, 1U);
}

TEST(ExpandedDeltaNet, HasOneExpAndTwoProductsPerStep) {
  const OpCount n = count(expanded_output(net_of(3)));
  EXPECT_EQ(n.scans, 1U);
  EXPECT_EQ(n.stacked, 1U);
  EXPECT_EQ(n.exp, 1U);
  EXPECT_EQ(n.matmul, 2U);
}

Graph gradient_of(const Graph& g) {
  std::vector<ValueRef> all;
  for (const NodeId in : g.inputs()) all.emplace_back(g.node(in).op.as<op::Input>()->name);
  return vjp(g, all).graph;
}

// The size of the expansion of the one backward op in a graph; 0 when there is none.
std::size_t expanded_backward_size(const Graph& gradient) {
  for (NodeId id = 0; id < gradient.size(); ++id) {
    const Op& op = gradient.node(id).op;
    if (op.is<op::SelectiveScanBackward>() || op.is<op::GatedDeltaNetBackward>()) {
      return expanded(gradient, id).size();
    }
  }
  return 0;
}

// [ssm-native-grad] Graphs do not grow with time, neither forwards nor backwards.
TEST(ExpandedRecurrences, DoNotGrowWithTime) {
  for (const auto& make : {scan_of, net_of}) {
    EXPECT_EQ(expanded_output(make(3)).size(), expanded_output(make(300)).size());
    const Graph few = gradient_of(make(3));
    const Graph many = gradient_of(make(300));
    EXPECT_EQ(few.size(), many.size());
    EXPECT_GT(expanded_backward_size(few), 0U);
    EXPECT_EQ(expanded_backward_size(few), expanded_backward_size(many));
  }
}

TEST(ExpandedRecurrences, NeedNotKnowTheNumberOfSteps) {
  for (const auto& make : {scan_of, net_of}) {
    const Graph g = make("s");
    const Graph loops = expanded_output(g);
    Feeds feeds;
    for (const NodeId in : g.inputs()) {
      const auto& input = *g.node(in).op.as<op::Input>();
      Type type = input.type;
      for (Dim& d : type.dims) d = d.bind({{"s", 5}});
      feeds.emplace(input.name, random_tensor(in, type, -1, 0));
    }
    EXPECT_TRUE(close(interpret(loops, feeds)[0], interpret(g, feeds)[0], {1e-12, 1e-12}));
  }
}

TEST(RecurrentBuilders, GiveTheFinalState) {
  Graph g("states");
  const Value x = g.input("x", bf16({2, 5, 3}));
  const Value a = g.input("a", bf16({3, 4}));
  const Value b = g.input("b", bf16({2, 5, 4}));
  const auto scan = selective_scan_with_state(x, x, a, b, b, {.state_size = 4});
  EXPECT_EQ(scan.state.type(), f32({2, 3, 4}));  // the state is wide even for narrow inputs
  const auto again = selective_scan_with_state(x, x, a, b, b, {.state_size = 4}, scan.state);
  const Value q = g.input("q", f32({2, 5, 2, 3}));
  const Value gate = g.input("gate", f32({2, 5, 2}));
  const Value state = g.input("state", f32({2, 2, 3, 3}));
  const auto net = gated_delta_net_carry(q, q, q, gate, gate, state, 3);
  EXPECT_EQ(net.state.type(), state.type());
  g.set_outputs({scan.out, again.out, again.state, net.out, net.state});
  verify(g);
}

TEST(RecurrentBuilders, AreSpellingsTheParserAccepts) {
  const Graph g = parse_graph(R"(graph @main {
    %q = input "q" : f32[2, 5, 2, 3]
    %g = input "g" : f32[2, 5, 2]
    %s = input "s" : f32[2, 2, 3, 3]
    %o, %last = gated_delta_net_carry %q, %q, %q, %g, %g, %s {state_size = 3}
    return %o, %last
  })");
  EXPECT_TRUE(g.nodes().back().op.as<op::GatedDeltaNet>()->carry_state);
  EXPECT_TRUE(parse_graph(print(g)) == g);
}

}  // namespace
}  // namespace ricci::testing::rule_sequence_test
