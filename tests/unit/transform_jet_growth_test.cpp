// How graphs grow with the order, and derivatives along several directions. [nth-order-general]
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/higher_order.h"

#include "support/compare.h"

namespace ricci::testing::transform_jet_growth_test {
namespace {

using Numbers = std::vector<double>;

Graph of(const std::function<Value(Value)>& f, const Type& type = f64({})) {
  Graph g("f");
  const Value x = g.input("x", type);
  g.set_outputs({f(x)});
  return g;
}

Tensor numbers(Dims dims, const Numbers& values) {
  return Tensor::from_numbers<double>(f64(std::move(dims)), values);
}

// Along directions of very different sizes.
TEST(TransformJetGrowth, MixedDirections) {
  const Graph g = of(
      [](Value x) {
        const Value w = x.graph().constant(numbers({3}, {0.5, -0.25, 1}));
        return exp(sum(x * w));
      },
      f64({3}));
  const Numbers w{0.5, -0.25, 1};
  const Tensor at = numbers({3}, {0.1, 0.2, 0.3});
  for (const int levels : {1, 3, 4, 5, 6, 8}) {
    const Transformed t = directional_nth_grad(g, "x", levels);
    verify(t.graph);
    Feeds feeds{{"x", at}};
    double expected = std::exp(0.5 * 0.1 - 0.25 * 0.2 + 0.3);
    for (int i = 1; i <= levels; ++i) {
      const double size = i % 2 == 0 ? 1e-6 : 1e3;
      const Numbers v{size * i, -size, size * 0.5};
      feeds[fmt::format("dir_{}", i)] = numbers({3}, v);
      expected *= w[0] * v[0] + w[1] * v[1] + w[2] * v[2];
    }
    EXPECT_NEAR(interpret(t.graph, feeds)[0].numbers<double>()[0] / expected, 1, 1e-11) << levels;
  }
}

// The number of nodes is at most quadratic in the order: twice the order, less than four times the
// nodes and a few. Nesting had tanh at about 2ⁿ, 4500 nodes at order 11.
TEST(TransformJetGrowth, GraphsGrowPolynomially) {
  const auto weights = [](Value x, std::uint64_t seed, Dims dims) {
    return x.graph().constant(random_tensor(seed, f64(std::move(dims))));
  };
  const std::vector<std::pair<const char*, Graph>> all{
      {"tanh", of([](Value x) { return tanh(x); })},
      {"gelu", of([](Value x) { return gelu(x); })},
      {"sqrt", of([](Value x) { return sqrt(x); })},
      {"softmax loss", of([&](Value x) {
         const Value y = softmax(x * weights(x, 1, {5}), {.axis = -1});
         return sum(y * weights(x, 2, {5}));
       })},
      {"network", of([&](Value x) {
         const Value h = tanh(matmul(reshape_to(x, {1, 1}), weights(x, 1, {1, 8})));
         const Value again = tanh(matmul(h, weights(x, 2, {8, 8})));
         return sum(matmul(again, weights(x, 3, {8, 1})));
       })},
  };
  for (const auto& [name, g] : all) {
    std::vector<std::size_t> nodes;
    for (int order = 3; order <= 12; ++order) {
      nodes.push_back(nth_order_grad(g, "x", order).graph.size());
    }
    EXPECT_LT(nodes[12 - 3], 4 * nodes[6 - 3] + 20) << name;
    EXPECT_LT(nodes[12 - 3], 500U) << name;
    EXPECT_LT(directional_nth_grad(g, "x", 8).graph.size(), 600U) << name;
  }
}

// Loops stay one loop: their bodies grow, their number does not.
TEST(TransformJetGrowth, LoopsStayOne) {
  const Graph g = of([](Value x) {
    const Value rows = iota(x.graph(), {.shape = {300}, .axis = 0, .dtype = DType::F64});
    const auto step = [](Graph&, std::span<const Value> in) {
      return std::vector{sin(in[0]) + in[1] * 1e-3};
    };
    return scan(std::array{x}, ScanOptions{.xs = {rows}}, step)[0];
  });
  const auto body_size = [&](int order) {
    const Transformed t = nth_order_grad(g, "x", order);
    std::size_t loops = 0;
    std::size_t nodes = 0;
    for (const Node& node : t.graph.nodes()) {
      if (node.bodies.empty()) continue;
      ++loops;
      nodes += node.bodies[0].graph->size();
    }
    EXPECT_EQ(loops, 1U);
    return nodes;
  };
  EXPECT_LT(body_size(12), 4 * body_size(6));
}

}  // namespace
}  // namespace ricci::testing::transform_jet_growth_test
