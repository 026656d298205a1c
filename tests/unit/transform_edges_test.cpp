// Where transforms must neither lose something in silence nor stop without need.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/eval.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/transform/check.h"
#include "ricci/transform/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"

namespace ricci::testing::transform_edges_test {
namespace {

std::size_t count(const Graph& g, std::string_view op) {
  std::size_t n = 0;
  for (const Node& node : g.nodes()) n += node.op.mnemonic() == op ? 1 : 0;
  return n;
}

ErrorCode code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.code();
  }
  return ErrorCode::Internal;
}

// [TR-06] an auxiliary output that has no gradient, or would be taken apart, is left alone
TEST(TransformEdges, AuxiliaryOutputsAreNotDifferentiated) {
  const Graph g = parse_graph(R"(
graph @aux {
  %x = input "x" : f64[2]
  %w = input "w" : f64[2, 2]
  %q = mul %x, %x
  %l = reduce %q {op = sum, axes = [0]}
  %e = while %x cond {
    %c = input "c" : f64[2]
    %t = constant false : bool[]
    return %t
  } body {
    %c = input "c" : f64[2]
    return %c
  }
  %m = reshape %x {new_shape = [1, 2]}
  %f = fused_matmul_bias_act %m, %w, %x
  return %l, %e, %f
}
)");
  const Transformed t = value_and_grad(g, {"x"});
  EXPECT_EQ(count(t.graph, "while"), 1U);
  EXPECT_EQ(count(t.graph, "fused_matmul_bias_act"), 1U);
}

// [custom-no-silent-drop] [scan-unused-inputs] a path that a body cuts is cut in strict mode
TEST(TransformEdges, PathsCutInsideBodiesAreErrors) {
  const Graph g = parse_graph(R"(
graph @cut {
  %x = input "x" : f64[]
  %u = input "u" : f64[]
  %y = scan %x, %u {length = 3, num_bcast = 1} body {
    %c = input "c" : f64[]
    %b = input "b" : f64[]
    %i = cast %b {to = i32}
    %f = cast %i {to = f64}
    %n = add %c, %f
    return %n
  }
  return %y
}
)");
  EXPECT_EQ(code_of([&] { (void)grad(g, {"u"}); }), ErrorCode::NoGradient);
  EXPECT_EQ(code_of([&] { (void)grad(g, {"x", "u"}); }), ErrorCode::NoGradient);
  EXPECT_NO_THROW((void)grad(g, {"x"}));
}

// An error of a rule says which node it is about.
TEST(TransformEdges, ErrorsOfRulesHaveAPlace) {
  const Graph g = parse_graph(R"(graph @loop {
  %x = input "x" : f64[]
  %y = while %x cond {
    %c = input "c" : f64[]
    %t = constant false : bool[]
    return %t
  } body {
    %c = input "c" : f64[]
    return %c
  }
  return %y
}
)");
  try {
    (void)grad(g, {"x"});
    FAIL() << "was differentiated";
  } catch (const AutodiffError& e) {
    EXPECT_EQ(e.code(), ErrorCode::UnboundedLoop);
    EXPECT_EQ(e.diagnostic().where.line, 3U) << e.what();
  }
}

// [G-05] products and running extremes along an axis whose size a run decides
TEST(TransformEdges, SymbolicAxesOfProducts) {
  for (const char* op : {"reduce %x {op = prod, axes = [0]}", "cumprod %x {axis = 0}",
                         "cumprod %x {axis = 0, exclusive = true}", "cummax %x {axis = 0}"}) {
    SCOPED_TRACE(op);
    const Graph g = parse_graph(std::string("graph @p {\n  %x = input \"x\" : f64[n, 2]\n  %y = ") +
                                op + "\n  return %y\n}\n");
    const Graph bound = g.bind({{"n", 4}});
    const Feeds feeds{{"x", random_tensor(1, f64({4, 2}))}};
    const auto expected = interpret(value_and_grad(bound, {"x"}).graph, feeds);
    const auto actual = interpret(value_and_grad(g, {"x"}).graph, feeds);
    EXPECT_TRUE(close(actual[1], expected[1]));
  }
}

TEST(TransformEdges, DrawsInBodiesAreSplitToo) {
  Graph g("draws");
  const Value x = g.input("x", f64({}));
  const Value y = scan(
      x,
      [](Graph& body, std::span<const Value> in) {
        return std::vector{in[0] + rng_normal(body, {.shape = Dims{}, .dtype = DType::F64})};
      },
      1);
  g.set_outputs({y});
  VmapOptions options;
  options.random = BatchedRandom::Split;
  const auto out =
      interpret(vmap(g, {{"x"}}, 3, options).graph, {{"x", Tensor::zeros(f64({3}))}})[0]
          .numbers<double>();
  EXPECT_NE(out[0], out[1]);
  EXPECT_NE(out[1], out[2]);
  const auto shared =
      interpret(vmap(g, {{"x"}}, 3).graph, {{"x", Tensor::zeros(f64({3}))}})[0].numbers<double>();
  EXPECT_EQ(shared[0], shared[1]);
}

// More elements than f16 can count. [dtype-of-helper-constants]
TEST(TransformEdges, NarrowFloatsCountInWiderOnes) {
  Graph g("mean");
  g.set_outputs({mean(g.input("x", f16({70000})))});
  const auto dx =
      interpret(value_and_grad(g, {"x"}).graph, {{"x", Tensor::zeros(f16({70000}))}})[1];
  EXPECT_NEAR(dx.numbers<double>()[5], 1.0 / 70000, 1e-6);
}

// A rule of a registered op that gives the wrong thing is its author's fault.
class WrongRule final : public CustomOp {
 public:
  [[nodiscard]] std::string name() const override { return "wrong"; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes&) const override {
    return {operands[0]};
  }
  void eval(const Bytes&, EvalContext& c) const override { c.give(0, c.tensor(0)); }
  [[nodiscard]] std::vector<Value> vjp(const Bytes&, const VjpContext& c) const override {
    return {sum(c.cotangent())};
  }
};

TEST(TransformEdges, WrongRulesOfRegisteredOpsAreUserErrors) {
  Registry registry;
  registry.add(std::make_shared<WrongRule>());
  Graph g("custom", registry);
  g.set_outputs({custom_op("wrong", {}, std::array{g.input("x", f64({2}))})[0]});
  try {
    (void)grad(g, {"x"});
    FAIL() << "was differentiated";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("'wrong' (version 1)"), std::string::npos) << e.what();
  }
}

TEST(TransformEdges, JacobiansOfIntegersAreZeroInBothModes) {
  Graph g("counting");
  const Value x = g.input("x", f32({3}));
  g.set_outputs({cast_to(x * x, DType::F64), cast_to(x, DType::I32)});
  const Feeds feeds{{"x", random_tensor(1, f32({3}))}};
  const auto forward = interpret(jacfwd(g, {"x"}).graph, feeds);
  const auto reverse = interpret(jacrev(g, {"x"}).graph, feeds);
  ASSERT_EQ(forward.size(), reverse.size());
  for (std::size_t i = 0; i < forward.size(); ++i) EXPECT_TRUE(close(reverse[i], forward[i]));
}

TEST(TransformEdges, GaussNewtonWantsALossOfItsPredictions) {
  Graph g("apart");
  const Value w = g.param("w", f64({2}));
  const Value p = square(w).named("p");
  g.set_outputs({sum(w), p});
  EXPECT_EQ(code_of([&] { (void)gauss_newton_product(g, {"w"}, p); }), ErrorCode::NoGradient);
}

TEST(TransformEdges, TheCheckerKnowsRulesThatAreMeantToDiffer) {
  Graph g("stopped");
  const Value x = g.input("x", f64({3}));
  g.set_outputs({x * stop_gradient(x)});
  const DerivativeReport report = check_derivatives(g, {}, {{"x", random_tensor(1, f64({3}))}});
  EXPECT_TRUE(report.by_definition);
  EXPECT_TRUE(report.ok()) << report.to_string();
  // A function is held to its rule, but for what it rounds.
  for (const bool rounds : {false, true}) {
    Graph own("own");
    const Value a = own.input("x", f64({3}));
    own.set_outputs({custom_fn(
        std::array{a},
        [&](Graph&, std::span<const Value> in) {
          return std::vector{rounds ? round(in[0] * 8.0) : in[0] * in[0]};
        },
        {.vjp = [](Graph&, const VjpInputs& in) { return std::vector{in.d_outputs[0] * 8.0}; },
         .jvp = [](Graph&, const JvpInputs& in) { return std::vector{in.tangents[0] * 8.0}; }})});
    const DerivativeReport judged = check_derivatives(own, {}, {{"x", random_tensor(1, f64({3}))}});
    EXPECT_EQ(judged.by_definition, rounds);
    EXPECT_EQ(judged.ok(), rounds) << judged.to_string();
  }
}

}  // namespace
}  // namespace ricci::testing::transform_edges_test
