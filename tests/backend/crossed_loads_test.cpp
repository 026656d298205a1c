// Arrays that are read across the order of memory: squares of both axes are read at once, and rows
// are walked in the order that lets them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/transform/grad.h"

#include "backend/agreement.h"
#include "support/compare.h"

namespace ricci::testing::crossed_loads_test {
namespace {

Value number_like(const Value& x, double n) {
  return x.graph().constant(Tensor::splat({x.dtype(), {}}, n));
}

TEST(BackendCrossedLoads, MatricesOfAnyShapeAreTransposed) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I8, DType::I32,
                            DType::I64, DType::Bool, DType::C64, DType::C128}) {
    for (const auto& [rows, columns] :
         {std::pair{70, 90}, std::pair{8, 601}, std::pair{601, 8}, std::pair{9, 513},
          std::pair{64, 64 + 16}, std::pair{300, 17}, std::pair{11, 1000}}) {
      SCOPED_TRACE(fmt::format("{}[{}, {}]", name(dtype), rows, columns));
      Graph g("t");
      const Value x = g.input("x", {dtype, {rows, columns}});
      g.set_outputs({transpose(x, {.perm = {1, 0}})});
      expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type())}});
    }
  }
}

TEST(BackendCrossedLoads, AxesOfAnyOrderAreFound) {
  Axes perm{0, 1, 2, 3};
  do {
    Graph g("p");
    const Value x = g.input("x", f32({9, 11, 10, 13}));
    const Value y = transpose(x, {.perm = perm});
    const Value z = g.input("z", y.type());
    g.set_outputs({add(mul(y, number_like(x, 3)), z)});
    expect_agreement_everywhere(
        g, {{"x", random_tensor(3, x.type())}, {"z", random_tensor(4, z.type())}});
  } while (std::ranges::next_permutation(perm, {}, &Axis::value).found);
}

// Beside a crossed array: straight ones, what is one number a row or a column, borders.
TEST(BackendCrossedLoads, OtherLoadsAreWhatTheyWere) {
  Graph g("mixed");
  const Value x = g.input("x", f32({75, 101}));
  const Value y = g.input("y", f32({101, 75}));
  const Value row = g.input("r", f32({101, 1}));
  const Value column = g.input("c", f32({75}));
  const Value other = g.input("o", f64({75, 101}));
  const Value turned = transpose(x, {.perm = {1, 0}});
  const Value around = pad(narrow(y, {.axis = 1, .start = 2, .len = 70}), number_like(x, 0.5),
                           {.low = {0, 4}, .high = {0, 1}});
  const Value sum = add(add(mul(turned, y), around), add(tanh(row), column));
  const Value wide = cast(transpose(other, {.perm = {1, 0}}), {.to = DType::F32});
  g.set_outputs({sub(sum, wide), reverse(turned, {.axes = {0, 1}})});
  expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type())},
                                  {"y", random_tensor(4, y.type())},
                                  {"r", random_tensor(5, row.type())},
                                  {"c", random_tensor(6, column.type())},
                                  {"o", random_tensor(7, other.type())}});
}

std::size_t kernel_count(const Graph& graph) { return make_program(graph).kernels.size(); }

TEST(BackendViewsFirst, WhatIsLookedAtIsComputedOnce) {
  Graph g("views");
  const Value x = g.input("x", f32({60, 90}));
  const Value y = g.input("y", f32({60, 90}));
  const Value sum = tanh(add(mul(x, y), number_like(x, 1)));
  const Value turned = transpose(sum, {.perm = {1, 0}});
  const Value part =
      take_every(narrow(turned, {.axis = 0, .start = 5, .len = 70}), {.axis = 1, .stride = 2});
  g.set_outputs({exp(reverse(part, {.axes = {0}}))});
  EXPECT_EQ(kernel_count(g), 1U);
  expect_agreement_everywhere(
      g, {{"x", random_tensor(3, x.type())}, {"y", random_tensor(4, y.type())}});
}

TEST(BackendViewsFirst, AStencilAndItsGradientAreAKernelEach) {
  Graph g("stencil");
  const Value x = g.input("x", f32({65, 70}));
  const Value p = pad(x, number_like(x, 0), {.low = {1, 1}, .high = {1, 1}});
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return narrow(narrow(p, {.axis = 0, .start = i, .len = 65}),
                  {.axis = 1, .start = j, .len = 70});
  };
  g.set_outputs({add(add(at(0, 1), at(2, 1)), add(at(1, 0), at(1, 2)))});
  const Graph gradient = vjp(g, {"x"}).graph;
  EXPECT_EQ(kernel_count(gradient), 2U);
  Feeds feeds;
  for (const NodeId id : gradient.inputs()) {
    const Node& node = gradient.nodes()[id];
    feeds.emplace(node.op.as<op::Input>()->name, random_tensor(id + 1, node.types[0]));
  }
  expect_agreement_everywhere(gradient, feeds);
}

// Kernels that share an array but go through it in different orders gain nothing together.
TEST(BackendViewsFirst, OtherOrdersAreOtherKernels) {
  Graph g("orders");
  const Value x = g.input("x", f32({64, 128}));
  const Value y = g.input("y", f32({128, 64}));
  const Value turned = transpose(x, {.perm = {1, 0}});
  g.set_outputs({exp(x), mul(turned, y)});
  EXPECT_EQ(kernel_count(g), 2U);
  expect_agreement_everywhere(
      g, {{"x", random_tensor(3, x.type())}, {"y", random_tensor(4, y.type())}});
}

TEST(BackendViewsFirst, SumsOfPermutedArraysFollowTheArray) {
  for (const Axes& perm : {Axes{1, 2, 0}, Axes{2, 1, 0}, Axes{0, 2, 1}, Axes{1, 0, 2}}) {
    for (const bool keep : {false, true}) {
      Graph g("sums");
      const Value x = g.input("x", f32({17, 19, 23}));
      const Value t = transpose(x, {.perm = perm});
      const Value s = mul(t, mul(t, number_like(x, 2)));
      g.set_outputs({reduce(s, {.op = ReduceKind::Sum, .axes = {2}, .keep_dim = keep}),
                     reduce(transpose(x, {.perm = perm}),
                            {.op = ReduceKind::Max, .axes = {0, 2}, .keep_dim = keep})});
      expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type())}});
    }
  }
}

// A value that is read twice by one node is walked once: twice as long with every node would be for
// ever here.
TEST(BackendCrossedLoads, ChainsOfDoublingAreWalkedOnce) {
  Graph g("doubling");
  const Value x = g.input("x", f32({6, 5}));
  Value y = transpose(x, {.perm = {1, 0}});
  for (int i = 0; i < 50; ++i) y = where(gt(y, y), y, mul(add(y, y), number_like(x, 0.5)));
  g.set_outputs({sum(y, {0}), sum(transpose(y, {.perm = {1, 0}}), {0})});
  expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type())}});
}

// Two ways to look at one value; and a chain that is longer than views are moved past.
TEST(BackendViewsFirst, WhatOthersReadStays) {
  Graph g("shared");
  const Value x = g.input("x", f32({64, 80}));
  const Value e = exp(x);
  g.set_outputs({sub(narrow(e, {.axis = 1, .start = 1, .len = 79}),
                     narrow(e, {.axis = 1, .start = 0, .len = 79}))});
  EXPECT_EQ(kernel_count(g), 2U);
  expect_agreement_everywhere(g, {{"x", random_tensor(3, x.type())}});
  Graph h("long");
  Value y = h.input("x", f32({300}));
  const Type type = y.type();
  for (int i = 0; i < 300; ++i) y = i % 2 == 0 ? neg(y) : add(y, number_like(y, 1));
  h.set_outputs({narrow(y, {.axis = 0, .start = 3, .len = 100})});
  expect_agreement_everywhere(h, {{"x", random_tensor(3, type)}});
}

}  // namespace
}  // namespace ricci::testing::crossed_loads_test
