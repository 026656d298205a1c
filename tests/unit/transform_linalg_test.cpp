// What the derivatives and batched forms of products, linear systems, convolutions and pooling are
// made of, and their values where random cases say little.
#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"

namespace ricci::testing::transform_linalg_test {
namespace {

using Numbers = std::vector<double>;

template <class Predicate>
std::ptrdiff_t count_if(const Graph& g, Predicate&& p) {
  return std::ranges::count_if(g.nodes(), p);
}

std::ptrdiff_t count(const Graph& g, std::string_view mnemonic) {
  return count_if(g, [&](const Node& n) { return n.op.mnemonic() == mnemonic; });
}

Numbers run(const Graph& g, const Feeds& feeds, std::size_t output = 0) {
  return interpret(g, feeds)[output].numbers<double>();
}

Tensor numbers(Dims dims, const Numbers& values) {
  return Tensor::from_numbers<double>(f64(std::move(dims)), values);
}

// The gradient of the sum of the graph's output.
Numbers gradient(const Graph& g, const char* wrt, const Feeds& feeds) {
  return run(value_and_grad(g, {wrt}).graph, feeds, 1);
}

// [LA-03]
TEST(LinalgTransforms, AWeightGradientIsOneProductOverAllRows) {
  Graph g;
  const Value x = g.input("x", f64({5, 7, 3}));
  const Value w = g.param("w", f64({3, 2}));
  g.set_outputs({matmul(x, w)});
  const Graph d = grad(g, {"w"}, {.external_seed = true}).graph;
  EXPECT_EQ(count(d, "matmul"), 1) << print(d);
  EXPECT_EQ(count(d, "reduce"), 0) << print(d);
  EXPECT_EQ(count_if(d, [](const Node& n) { return n.types[0] == f64({5, 3, 2}); }), 0);

  Graph h;
  const Value y = h.input("x", f64({5, 7, 3}));
  const Value v = h.param("w", f64({3, 2}));
  h.set_outputs({dot_general(y, v, {.lhs_contracting = {2}, .rhs_contracting = {0}})});
  const Graph e = grad(h, {"w"}, {.external_seed = true}).graph;
  EXPECT_EQ(count(e, "dot_general"), 1) << print(e);
  EXPECT_EQ(count(e, "reduce") + count(e, "transpose"), 0) << print(e);
}

TEST(LinalgTransforms, ASolveIsDifferentiatedByOneAdjointSolve) {
  Graph g;
  const Value a = g.param("a", f64({2, 2}));
  const Value b = g.input("b", f64({2}));
  g.set_outputs({sum(dense_solve(a, b))});
  const Graph d = grad_with_loss(g, {"a", "b"}).graph;
  EXPECT_EQ(d.outputs().size(), 3U);
  EXPECT_EQ(count(d, "dense_solve"), 2) << print(d);
  EXPECT_GE(count(d, "transpose"), 1) << print(d);
  EXPECT_EQ(count(d, "matmul"), 1) << print(d);
  EXPECT_EQ(count(d, "neg"), 1) << print(d);
}

TEST(LinalgTransforms, SharedMatricesAreFactorisedOnce) {
  Graph g;
  const Value a = g.input("a", f64({3, 3}));
  const Value b = g.input("b", f64({3, 2}));
  g.set_outputs({dense_solve(a, b)});
  const Graph right = vmap(g, {"b"}, Dim::symbol("n")).graph;
  EXPECT_EQ(count(right, "dense_solve"), 1) << print(right);
  EXPECT_EQ(count(right, "batched_dense_solve") + count(right, "expand"), 0) << print(right);
  const Graph both = vmap(g, {"a", "b"}, Dim::symbol("n")).graph;
  EXPECT_EQ(count(both, "batched_dense_solve"), 1) << print(both);
}

// What a triangular solve does not read gets no gradient, whatever it holds.
TEST(LinalgTransforms, OnlyTheTriangleReadGetsAGradient) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool transposed : {false, true}) {
    for (const bool unit : {false, true}) {
      Graph g;
      const Value a = g.input("a", f64({2, 2}));
      const Value b = g.input("b", f64({2, 1}));
      g.set_outputs({triangular_solve(a, b, {.transpose = transposed, .unit = unit})});
      const double diagonal = unit ? nan : 2;
      const Numbers d = gradient(
          g, "a",
          {{"a", numbers({2, 2}, {diagonal, nan, 3, diagonal})}, {"b", numbers({2, 1}, {4, 8})}});
      EXPECT_EQ(d[1], 0);
      EXPECT_EQ((Numbers{d[0], d[3]}) == (Numbers{0, 0}), unit);
      EXPECT_TRUE(std::ranges::all_of(d, [](double v) { return v == v; }));
      EXPECT_NE(d[2], 0);
    }
  }
}

// [CV-03] one convolution whatever is batched, and nothing is repeated for it
TEST(ConvTransforms, ABatchOfConvolutionsIsOneConvolution) {
  Graph g;
  const Value x = g.input("x", f64({2, 4, 5, 5}));
  const Value w = g.input("w", f64({6, 2, 3, 3}));
  g.set_outputs({conv(x, w, {.stride = {2, 2}, .padding = {1, 1}, .groups = 2})});
  for (const auto& batched : std::vector<std::vector<BatchedInput>>{{"x"}, {"w"}, {"x", "w"}}) {
    const Graph b = vmap(g, batched, 3).graph;
    EXPECT_EQ(count(b, "conv"), 1) << print(b);
    EXPECT_EQ(count(b, "expand") + count(b, "concat"), 0) << print(b);
  }
  for (const char* one : {"x", "w"}) {
    const Graph b = vmap(g, {one}, Dim::symbol("b")).graph;
    EXPECT_EQ(count(b, "conv"), 1) << print(b);
    EXPECT_EQ(b.type(b.outputs()[0]), f64({"b", 2, 6, 3, 3}));
  }
}

TEST(ConvTransforms, ABatchMayBeEmpty) {
  Graph g;
  const Value x = g.input("x", f64({2, 1, 3, 3}));
  const Value w = g.input("w", f64({4, 1, 2, 2}));
  g.set_outputs({conv(x, w)});
  const Graph b = vmap(g, {"x", "w"}, 0).graph;
  EXPECT_EQ(b.type(b.outputs()[0]), f64({0, 2, 4, 2, 2}));
}

// [BW-07]
TEST(ConvTransforms, GradientsPerExampleAreOneProductEach) {
  Graph g;
  const Value x = g.input("x", f64({2, 4, 5, 5}));
  const Value w = g.param("w", f64({6, 2, 3, 3}));
  g.set_outputs({sum(conv(x, w, {.padding = {1, 1}, .groups = 2}))});
  const Graph d = value_and_grad(g, {"w", "x"}).graph;
  const Graph b = vmap(d, {"x"}, 3).graph;
  EXPECT_EQ(b.type(b.outputs()[1]), f64({3, 6, 2, 3, 3}));
  EXPECT_EQ(count(b, "conv2d_backward_weight"), 1) << print(b);
  EXPECT_EQ(count(b, "conv2d_backward_input"), 1) << print(b);
}

// Output channels that are not known to be a multiple of the groups are batched by more groups.
TEST(ConvTransforms, SymbolicChannelsAreBatched) {
  Graph g;
  const Value x = g.input("x", f64({1, 4, 3, 3}));
  const Value w = g.input("w", f64({"o", 2, 2, 2}));
  g.set_outputs({conv(x, w, {.groups = 2})});
  const Graph b = vmap(g, {"w"}, 3).graph;
  verify(b);
  const Feeds feeds = {{"x", random_tensor(1, f64({1, 4, 3, 3}))},
                       {"w", random_tensor(2, f64({3, 6, 2, 2, 2}))}};
  const Tensor all = interpret(b, feeds)[0];
  for (std::int64_t e = 0; e < 3; ++e) {
    const Tensor one = feeds.at("w").narrowed(0, e, 1).reshaped({6, 2, 2, 2});
    const Tensor alone = interpret(g, {{"x", feeds.at("x")}, {"w", one}})[0];
    EXPECT_TRUE(same(all.narrowed(0, e, 1).reshaped(alone.dims()), alone));
  }
}

constexpr ReduceKind PoolKinds[] = {ReduceKind::Max, ReduceKind::Min, ReduceKind::Sum,
                                    ReduceKind::Mean, ReduceKind::Prod};

Graph pooling(const Dims& dims, op::Pool attrs) {
  Graph g;
  g.set_outputs({pool(g.input("x", f64(dims)), std::move(attrs))});
  return g;
}

Numbers row_gradient(ReduceKind kind, const Numbers& row) {
  const Graph g = pooling({1, 1, 1, row.size()}, {.kind = kind, .kernel_size = {1, 2}});
  return gradient(g, "x", {{"x", numbers({1, 1, 1, row.size()}, row)}});
}

TEST(PoolTransforms, GradientsByHand) {
  EXPECT_EQ(row_gradient(ReduceKind::Max, {5, 5, 1, 5}), (Numbers{1, 1, 0, 1}));
  EXPECT_EQ(row_gradient(ReduceKind::Min, {1, 1, 5, 1}), (Numbers{1, 1, 0, 1}));
  EXPECT_EQ(row_gradient(ReduceKind::Sum, {4, 7, 9}), (Numbers{1, 2, 1}));
  EXPECT_EQ(row_gradient(ReduceKind::Mean, {4, 7, 9}), (Numbers{0.5, 1, 0.5}));
  EXPECT_EQ(row_gradient(ReduceKind::Prod, {0, 3, 0, 0}), (Numbers{3, 0, 3, 0}));
}

TEST(PoolTransforms, SizesMayBeSymbolic) {
  const Feeds feeds = {{"x", random_tensor(3, f64({2, 3, 4, 6}))}};
  for (const ReduceKind kind : PoolKinds) {
    const op::Pool attrs{.kind = kind,
                         .kernel_size = {3, 2},
                         .stride = {1, 2},
                         .padding = {1, 0},
                         .count_include_pad = false};
    const Graph known = value_and_grad(pooling({2, 3, 4, 6}, attrs), {"x"}).graph;
    const Dim w = Dim::symbol("w") * 2;
    const Graph open = value_and_grad(pooling({"n", "c", "h", w}, attrs), {"x"}).graph;
    EXPECT_EQ(run(open, feeds, 1), run(known, feeds, 1)) << name_of(kind);
  }
}

}  // namespace
}  // namespace ricci::testing::transform_linalg_test
