// Derivatives of the recurrent ops against central differences, and the structure of their
// unrolled forms.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/sequence.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/rule/expand.h"

#include "support/compare.h"
#include "support/derivative.h"

namespace ricci::testing {
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

struct OpCount {
  std::size_t concat = 0;
  std::size_t reduce_sum = 0;
  std::size_t exp = 0;
  std::size_t narrow = 0;
  std::size_t matmul = 0;
};

// Expands the node that made `v` and counts what it became.
OpCount expanded(const Graph& from, Value v) {
  Graph to("expanded");
  std::vector<Value> operands;
  for (const NodeId in : from.inputs()) {
    operands.push_back(to.input(from.node(in).op.as<op::Input>()->name, from.node(in).types[0]));
  }
  const auto results = expand_node(from.node(v.id().node), operands, to);
  to.set_outputs({results[0]});
  verify(to);
  OpCount n;
  for (const Node& node : to.nodes()) {
    const auto* unary = node.op.as<op::Unary>();
    const auto* reduction = node.op.as<op::Reduce>();
    n.concat += node.op.is<op::Concat>() ? 1 : 0;
    n.narrow += node.op.is<op::Narrow>() ? 1 : 0;
    n.matmul += node.op.is<op::Matmul>() ? 1 : 0;
    n.exp += unary != nullptr && unary->kind == UnaryKind::Exp ? 1 : 0;
    n.reduce_sum += reduction != nullptr && reduction->op == ReduceKind::Sum ? 1 : 0;
  }
  return n;
}

OpCount expanded_scan(std::int64_t steps) {
  Graph g("scan");
  const Value x = g.input("x", f32({1, steps, 2}));
  const Value delta = g.input("delta", f32({1, steps, 2}));
  const Value a = g.input("a", f32({2, 4}));
  const Value b = g.input("b", f32({1, steps, 4}));
  const Value c = g.input("c", f32({1, steps, 4}));
  return expanded(g, selective_scan(x, delta, a, b, c, {.state_size = 4}));
}

OpCount expanded_net(std::int64_t steps) {
  Graph g("net");
  const Value q = g.input("q", f32({1, steps, 2, 4}));
  const Value k = g.input("k", f32({1, steps, 2, 4}));
  const Value v = g.input("v", f32({1, steps, 2, 4}));
  const Value gate = g.input("gate", f32({1, steps, 2}));
  const Value beta = g.input("beta", f32({1, steps, 2}));
  return expanded(g, gated_delta_net(q, k, v, gate, beta, {.state_size = 4}));
}

TEST(UnrolledScan, HasOneExpSumAndFourNarrowsPerStep) {
  const OpCount n = expanded_scan(3);
  EXPECT_EQ(n.concat, 1U);
  EXPECT_EQ(n.reduce_sum, 3U);
  EXPECT_EQ(n.exp, 3U);
  EXPECT_GE(n.narrow, 12U);
  EXPECT_EQ(expanded_scan(1).concat, 0U);
}

TEST(UnrolledDeltaNet, HasOneExpAndTwoProductsPerStep) {
  const OpCount n = expanded_net(3);
  EXPECT_EQ(n.concat, 1U);
  EXPECT_EQ(n.exp, 3U);
  EXPECT_GE(n.matmul, 3U);
  EXPECT_EQ(expanded_net(1).concat, 0U);
}

TEST(UnrolledScan, NeedsToKnowTheNumberOfSteps) {
  Graph g("scan");
  const Dim s = Dim::symbol("s");
  const Value x = g.input("x", f32({1, s, 2}));
  const Value delta = g.input("delta", f32({1, s, 2}));
  const Value a = g.input("a", f32({2, 4}));
  const Value b = g.input("b", f32({1, s, 4}));
  const Value c = g.input("c", f32({1, s, 4}));
  const Value y = selective_scan(x, delta, a, b, c, {.state_size = 4});
  EXPECT_THROW((void)expanded(g, y), UserError);
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
}  // namespace ricci::testing
