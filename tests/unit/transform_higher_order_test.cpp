// Derivatives of derivatives, Jacobians and products with them.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"

#include "support/compare.h"

namespace ricci::testing::transform_higher_order_test {
namespace {

Tensor numbers(Dims dims, std::vector<double> values) {
  return Tensor::from_numbers<double>(f64(std::move(dims)), values);
}

// Σ x³ + x₀x₁
Graph cubic() {
  Graph g("cubic");
  const Value x = g.input("x", f64({2}));
  const Value first = narrow(x, {.axis = 0, .start = 0, .len = 1});
  const Value second = narrow(x, {.axis = 0, .start = 1, .len = 1});
  g.set_outputs({sum(x * x * x) + sum(first * second)});
  return g;
}
const Feeds At{{"x", numbers({2}, {2, -1})}};

TEST(TransformHigherOrder, HvpMultipliesByTheHessian) {
  const Transformed t = hvp(cubic(), {"x"});
  verify(t.graph);
  Feeds feeds = At;
  feeds["tangent_x"] = numbers({2}, {1, 10});
  const auto out = interpret(t.graph, feeds);
  ASSERT_EQ(out.size(), 4U);  // loss, gradient, t_loss, Hv
  EXPECT_TRUE(close(out[1], numbers({2}, {11, 5})));
  EXPECT_TRUE(close(out[2], numbers({}, {61})));
  EXPECT_TRUE(close(out[3], numbers({2}, {22, -59})));  // [[12, 1], [1, -6]]·(1, 10)
}

TEST(TransformHigherOrder, HvpKeepsItsSeedWhenAsked) {
  const Transformed t = hvp(cubic(), {"x"}, {.external_seed = true});
  EXPECT_TRUE(t.graph.find(t.names.at("d_output")).has_value());
}

TEST(TransformHigherOrder, JacobiansOfBothModesAgree) {
  Graph g("two");
  const Value x = g.input("x", f64({3}));
  const Value w = g.param("w", f64({2, 3}));
  g.set_outputs({tanh(matmul(w, reshape_to(x, {3, 1}))), sum(x * x)});
  const Feeds feeds{{"x", random_tensor(1, f64({3}))}, {"w", random_tensor(2, f64({2, 3}))}};
  const auto forward = interpret(jacfwd(g, {"x", "w"}).graph, feeds);
  const auto reverse = interpret(jacrev(g, {"x", "w"}).graph, feeds);
  ASSERT_EQ(forward.size(), 4U);
  const std::vector<StaticDims> shapes{{2, 3}, {2, 6}, {1, 3}, {1, 6}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(forward[i].dims(), shapes[i]);
    EXPECT_TRUE(close(reverse[i], forward[i]));
  }
}

TEST(TransformHigherOrder, HessianIsTheMatrix) {
  const auto out = interpret(hessian(cubic(), {"x"}).graph, At);
  EXPECT_TRUE(close(out[0], numbers({2, 2}, {12, 1, 1, -6})));
}

// sin has derivatives of every order. [nth-order-general]
TEST(TransformHigherOrder, NthDerivativesOfSine) {
  Graph g("sine");
  g.set_outputs({sin(g.input("x", f64({})))});
  const double x = 0.7;
  const std::array cycle{std::sin(x), std::cos(x), -std::sin(x), -std::cos(x)};
  for (int order = 0; order <= 6; ++order) {
    const Transformed t = nth_order_grad(g, "x", order);
    verify(t.graph);
    const auto out = interpret(t.graph, {{"x", numbers({}, {x})}});
    EXPECT_TRUE(
        close(out[0], numbers({}, {cycle[static_cast<std::size_t>(order % 4)]}), {1e-12, 1e-12}))
        << order;
    if (order == 0) continue;
    EXPECT_EQ(t.graph.name(), "sine_d" + std::to_string(order));
  }
}

// [TR-12] what does not depend on x any more has derivative zero, and keeps its inputs
TEST(TransformHigherOrder, VanishingDerivativesAreZero) {
  Graph g("square");
  const Value x = g.input("x", f64({}));
  g.set_outputs({x * x + g.input("b", f64({}))});
  const Transformed t = nth_order_grad(g, "x", 3);
  EXPECT_TRUE(t.graph.find("b").has_value());
  const auto out = interpret(t.graph, {{"x", numbers({}, {3})}, {"b", numbers({}, {1})}});
  EXPECT_TRUE(same(out[0], numbers({}, {0})));
}

// [TR-12]
TEST(TransformHigherOrder, ManyElementsAreRefusedWithAWayOut) {
  try {
    (void)nth_order_grad(cubic(), "x", 2);
    FAIL() << "was accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::Shape);
    EXPECT_NE(std::string(e.what()).find("directional_nth_grad"), std::string::npos);
  }
}

TEST(TransformHigherOrder, DirectionalDerivativesOfTensors) {
  const Transformed t = directional_nth_grad(cubic(), "x", 3);
  verify(t.graph);
  Feeds feeds = At;
  feeds["dir_1"] = numbers({2}, {1, 2});
  feeds["dir_2"] = numbers({2}, {3, 4});
  feeds["dir_3"] = numbers({2}, {5, 6});
  // 6·Σ dir_1·dir_2·dir_3
  EXPECT_TRUE(close(interpret(t.graph, feeds)[0], numbers({}, {6.0 * (15 + 48)})));
}

// jvp of an hvp is valid too [hvp-any-graph]
TEST(TransformHigherOrder, JvpOfHvp) {
  const Transformed second = hvp(cubic(), {"x"});
  const Transformed third = jvp(second.graph, {"x"});
  Feeds feeds = At;
  feeds["tangent_x"] = numbers({2}, {1, 10});
  feeds[third.names.at("tangent_x")] = numbers({2}, {1, 1});
  const auto out = interpret(third.graph, feeds);
  EXPECT_TRUE(close(out[7], numbers({2}, {6, 60})));  // 6·v·u
}

// With a quadratic loss of the predictions Jᵀ H J v is exact.
TEST(TransformHigherOrder, GaussNewtonProduct) {
  Graph g("model");
  const Value x = g.input("x", f64({4, 3}));
  const Value w = g.param("w", f64({3, 2}));
  const Value z = tanh(matmul(x, w)).named("z");
  g.set_outputs({sum(z * z * z)});
  const Feeds point{{"x", random_tensor(1, f64({4, 3}))}, {"w", random_tensor(2, f64({3, 2}))}};
  const Transformed t = gauss_newton_product(g, {"w"}, z);
  verify(t.graph);
  Feeds feeds = point;
  const Tensor v = random_tensor(3, f64({3, 2}));
  feeds[t.names.at("tangent_w")] = v;
  const auto out = interpret(t.graph, feeds);
  // By hand: J from jacfwd of z, H = diag(6 z).
  Graph predictions = g;
  predictions.set_outputs(std::vector<ValueId>{z.id()});
  const auto z_at = interpret(predictions, point)[0].numbers<double>();
  const auto j = interpret(jacfwd(predictions, {"w"}).graph, point)[0].numbers<double>();
  const auto direction = v.numbers<double>();
  std::vector<double> expected(6);
  for (std::size_t i = 0; i < 8; ++i) {
    double along = 0;
    for (std::size_t k = 0; k < 6; ++k) along += j[6 * i + k] * direction[k];
    for (std::size_t k = 0; k < 6; ++k) expected[k] += j[6 * i + k] * 6 * z_at[i] * along;
  }
  EXPECT_TRUE(close(out[1], numbers({3, 2}, expected)));
}

}  // namespace
}  // namespace ricci::testing::transform_higher_order_test
