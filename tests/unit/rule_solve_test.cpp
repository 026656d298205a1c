// Solutions of linear systems, checked by putting them back in.
#include <complex>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"

#include "support/compare.h"

namespace ricci::testing::rule_solve_test {
namespace {

constexpr Tolerance Residual{1e-10, 1e-10};

// A random matrix with a heavier diagonal, so that its condition is good.
Tensor well_conditioned(std::uint64_t seed, const Type& type) {
  const Tensor noise = random_tensor(seed, type, -1, 1);
  auto numbers = noise.numbers<std::complex<double>>();
  const auto n = static_cast<std::size_t>(noise.dims().back());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i / n % n == i % n) numbers[i] += 2 * static_cast<double>(n);
  }
  return Tensor::from_numbers<std::complex<double>>(type, numbers);
}

TEST(Solve, DenseSolutionsSolveTheirSystem) {
  for (const DType dtype : {DType::F64, DType::C128}) {
    for (const std::int64_t n : {1, 2, 7, 20}) {
      Graph g;
      const Value a = g.input("a", {dtype, {n, n}});
      const Value b = g.input("b", {dtype, {n, 3}});
      g.set_outputs({matmul(a, dense_solve(a, b))});
      const Feeds feeds = {{"a", random_tensor(1, a.type(), -1, 1)},
                           {"b", random_tensor(2, b.type())}};
      EXPECT_TRUE(close(interpret(g, feeds)[0], feeds.at("b"), Residual)) << n;
    }
  }
}

TEST(Solve, BatchesAreIndependentSystems) {
  for (const DType dtype : {DType::F64, DType::C128}) {
    Graph g;
    const Value a = g.input("a", {dtype, {4, 5, 5}});
    const Value b = g.input("b", {dtype, {4, 5}});
    const Value x = batched_dense_solve(a, b);
    g.set_outputs({reshape_to(matmul(a, reshape_to(x, {4, 5, 1})), {4, 5})});
    const Feeds feeds = {{"a", random_tensor(3, a.type(), -1, 1)},
                         {"b", random_tensor(4, b.type())}};
    EXPECT_TRUE(close(interpret(g, feeds)[0], feeds.at("b"), Residual));
  }
}

TEST(Solve, AComplexSystemByHand) {
  using C = std::complex<double>;
  Graph g;
  const Value a = g.input("a", {DType::C128, {2, 2}});
  const Value b = g.input("b", {DType::C128, {2}});
  g.set_outputs({dense_solve(a, b)});
  // (i)x + y = 1 + i, x + (i)y = 0, solved by x = (1 - i)/2, y = (1 + i)/2
  const std::vector<C> as = {C(0, 1), C(1, 0), C(1, 0), C(0, 1)};
  const std::vector<C> bs = {C(1, 1), C(0, 0)};
  const std::vector<C> xs = {C(0.5, -0.5), C(0.5, 0.5)};
  const Feeds feeds = {{"a", Tensor::from_numbers<C>(a.type(), as)},
                       {"b", Tensor::from_numbers<C>(b.type(), bs)}};
  EXPECT_TRUE(close(interpret(g, feeds)[0], Tensor::from_numbers<C>(b.type(), xs)));
}

// The matrix a triangular solve means, written with the ops of the graph.
Value meant_matrix(Value a, const op::TriangularSolve& options) {
  const Axis rows = static_cast<std::int64_t>(a.rank() - 2);
  const Axis columns = static_cast<std::int64_t>(a.rank() - 1);
  const Value i = iota(a.graph(), {.shape = a.dims(), .axis = rows});
  const Value j = iota(a.graph(), {.shape = a.dims(), .axis = columns});
  const Value zero = scalar_like(a, 0);
  Value t = options.lower ? where(ge(i, j), a, zero) : where(le(i, j), a, zero);
  if (options.unit) t = where(eq(i, j), scalar_like(a, 1), t);
  return options.transpose ? transpose_last(t) : t;
}

TEST(Solve, TriangularSolutionsSolveTheSystemTheirFlagsMean) {
  for (const DType dtype : {DType::F64, DType::C128}) {
    for (int flags = 0; flags < 8; ++flags) {
      const op::TriangularSolve options{
          .lower = (flags & 1) != 0, .transpose = (flags & 2) != 0, .unit = (flags & 4) != 0};
      Graph g;
      const Value a = g.input("a", {dtype, {2, 3, 6, 6}});
      const Value b = g.input("b", {dtype, {2, 3, 6, 2}});
      const Value x = triangular_solve(a, b, options);
      g.set_outputs({matmul(meant_matrix(a, options), x)});
      const Feeds feeds = {{"a", well_conditioned(5, a.type())}, {"b", random_tensor(6, b.type())}};
      EXPECT_TRUE(close(interpret(g, feeds)[0], feeds.at("b"), Residual)) << flags;
    }
  }
}

}  // namespace
}  // namespace ricci::testing::rule_solve_test
