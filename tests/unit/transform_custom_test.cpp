// Registered ops under the transforms: rules are used where there are some, and missed aloud.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/batch.h"
#include "ricci/compiler/rule/eval.h"
#include "ricci/compiler/rule/jvp.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/interp/interpreter.h"
#include "ricci/transform/check.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"

namespace ricci::testing::transform_custom_test {
namespace {

// (a·b, a + s) element by element, where s is a setting and not differentiated.
class Pair : public CustomOp {
 public:
  [[nodiscard]] std::string name() const override { return "pair"; }
  [[nodiscard]] std::optional<std::size_t> num_inputs() const override { return 3; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes&) const override {
    return {operands[0], operands[0]};
  }
  void eval(const Bytes&, EvalContext& c) const override {
    RealNd product = c.real(0);
    RealNd moved = c.real(0);
    const RealNd b = c.real(1);
    const RealNd s = c.real(2);
    for (std::size_t i = 0; i < product.size(); ++i) {
      product.data[i] *= b.data[i];
      moved.data[i] += s.data[i];
    }
    c.give(0, product);
    c.give(1, moved);
  }
  [[nodiscard]] bool differentiable(std::size_t operand) const override { return operand != 2; }
};

class PairWithRules final : public Pair {
 public:
  [[nodiscard]] std::int64_t version() const override { return 2; }
  [[nodiscard]] std::vector<Value> vjp(const Bytes&, const VjpContext& c) const override {
    const Value d = c.cotangent_or_zero(0);
    return {d * c[1] + c.cotangent_or_zero(1), d * c[0], Value()};
  }
  [[nodiscard]] std::vector<Value> jvp(const Bytes&, JvpContext& c) const override {
    return {c.tangent_or_zero(0) * c[1] + c[0] * c.tangent_or_zero(1), c.tangent(0)};
  }
  [[nodiscard]] std::vector<BatchedValue> vmap(const Bytes&, const VmapContext& c) const override {
    return c.emit(c.node().op, std::array{c.lifted(0), c.lifted(1), c.lifted(2)});
  }
};

const Registry& pairs() {
  static Registry registry;
  static const bool added = [] {
    registry.add(std::make_shared<Pair>());
    registry.add(std::make_shared<PairWithRules>());
    return true;
  }();
  (void)added;
  return registry;
}

Graph program(std::int64_t version) {
  Graph g("pairs", pairs());
  const Value a = g.input("a", f64({3}));
  const Value b = g.input("b", f64({3}));
  const Value s = g.input("s", f64({3}));
  const auto out = custom_op("pair", {}, std::array{a, b, s}, version);
  g.set_outputs({sum(sin(out[0]) * out[1])});
  return g;
}

Feeds feeds() {
  return {{"a", random_tensor(1, f64({3}))},
          {"b", random_tensor(2, f64({3}))},
          {"s", random_tensor(3, f64({3}))}};
}

// [custom-multi-output]
TEST(TransformCustom, RulesAreUsed) {
  const DerivativeReport report = check_derivatives(program(2), {"a", "b"}, feeds(), {.order = 2});
  EXPECT_TRUE(report.ok()) << report.to_string();

  const Graph g = value_and_grad(program(2), {"a", "b"}).graph;
  const Graph over = vmap(g, {{"a"}}, 2).graph;
  Feeds many = feeds();
  many["a"] = random_tensor(7, f64({2, 3}));
  const auto all = interpret(over, many);
  for (std::int64_t e = 0; e < 2; ++e) {
    Feeds one = feeds();
    one["a"] = many.at("a").narrowed(0, e, 1).reshaped({3});
    const auto alone = interpret(g, one);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_TRUE(same(all[i].narrowed(0, e, 1).reshaped(alone[i].dims()), alone[i]));
    }
  }
}

TEST(TransformCustom, AnOperandDeclaredWithoutADerivativeGetsNone) {
  EXPECT_THROW((void)grad(program(1), {"s"}), UserError);  // nothing reaches it
  const Graph g = grad(program(1), {"s"}, {.zero_missing_wrt = true, .external_seed = true}).graph;
  Feeds with_seed = feeds();
  with_seed["d_output"] = Tensor::splat(f64({}), 1.0);
  EXPECT_TRUE(same(interpret(g, with_seed)[0], Tensor::zeros(f64({3}))));
}

// [custom-no-silent-drop]
TEST(TransformCustom, AMissingRuleIsRefused) {
  const auto expect_refused = [](auto&& transform, const std::string& operand) {
    try {
      transform();
      ADD_FAILURE() << "was accepted";
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ErrorCode::Refused) << e.what();
      EXPECT_NE(std::string(e.what()).find("'pair' version 1"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("operand " + operand), std::string::npos) << e.what();
    }
  };
  expect_refused([] { (void)grad(program(1), {"b"}); }, "1");
  expect_refused([] { (void)jvp(program(1), {"b"}); }, "1");
  expect_refused([] { (void)vmap(program(1), {{"s"}}, 2); }, "2");
}

}  // namespace
}  // namespace ricci::testing::transform_custom_test
