// Grouped products where the cases of the op do not look: what their transforms keep in memory,
// what they report, and a mixture of experts as a whole.
#include <algorithm>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/reduce.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/vmap.h"

#include "support/compare.h"

namespace ricci::rule_grouped_matmul_test {
namespace {

using testing::close;
using testing::random_tensor;
using testing::same;

constexpr std::int64_t M = 11;
constexpr std::int64_t K = 7;
constexpr std::int64_t E = 3;
constexpr std::int64_t N = 5;

std::int64_t largest_value(const Graph& g) {
  std::int64_t most = 0;
  for (const Node& node : g.nodes()) {
    for (const Type& t : node.types) most = std::max(most, t.numel().value_or(0));
  }
  return most;
}

Graph weighted_product() {
  Graph g;
  const Value x = g.input("x", f64({M, K}));
  const Value w = g.input("w", f64({E, K, N}));
  const Value ids = g.input("ids", i32({M}));
  const Value weights = g.input("weights", f64({M, N}));
  g.set_outputs({sum(grouped_matmul(x, w, ids) * weights)});
  return g;
}

// [gmm-grad-memory] nothing in the gradient is larger than an operand: no matrix for every row
TEST(GroupedMatmul, GradientKeepsNoMatrixForARow) {
  const Graph g = weighted_product();
  const Transformed gradient = value_and_grad(g, {"x", "w"});
  verify(gradient.graph);
  EXPECT_EQ(largest_value(gradient.graph), E * K * N);
}

// An expert no row picks has a gradient of 0, whatever its weights are.
TEST(GroupedMatmul, ExpertWithoutRowsHasNoGradient) {
  const Transformed gradient = value_and_grad(weighted_product(), {"w"});
  Tensor w = random_tensor(2, f64({E, K, N}));
  auto numbers = w.numbers<double>();
  std::fill(numbers.begin() + K * N, numbers.begin() + 2 * K * N,
            std::numeric_limits<double>::infinity());
  w = Tensor::from_numbers<double>(w.type(), numbers);
  const Feeds feeds{{"x", random_tensor(1, f64({M, K}))},
                    {"w", w},
                    {"ids", Tensor::of<std::int32_t>({M}, {0, 2, 2, 0, 2, 0, 0, 2, 0, 0, 2})},
                    {"weights", random_tensor(3, f64({M, N}))}};
  for (const auto& out : {interpret(gradient.graph, feeds), compile(gradient.graph).run(feeds)}) {
    const auto dw = out[1].numbers<double>();
    EXPECT_TRUE(std::all_of(dw.begin() + K * N, dw.begin() + 2 * K * N,
                            [](double v) { return v == 0 && !std::signbit(v); }));
    EXPECT_TRUE(std::any_of(dw.begin(), dw.begin() + K * N, [](double v) { return v != 0; }));
  }
}

// [gmm-rest] rows that examples share are not repeated for them
TEST(GroupedMatmul, BatchDoesNotRepeatSharedRows) {
  constexpr std::int64_t B = 6;
  Graph g;
  const Value x = g.input("x", f64({20, K}));
  const Value w = g.input("w", f64({2, K, 1}));
  g.set_outputs({grouped_matmul(x, w, g.input("ids", i32({20})))});
  for (const std::vector<BatchedInput>& batched :
       {std::vector<BatchedInput>{"w"}, {"ids"}, {"w", "ids"}}) {
    const Transformed over = vmap(g, batched, B);
    verify(over.graph);
    EXPECT_LT(largest_value(over.graph), B * 20 * K);
  }
}

// An index past the experts of its example must not reach those of the next.
TEST(GroupedMatmul, BatchReportsWhatASingleExampleReports) {
  for (const std::int32_t bad : {-1, 2}) {
    Graph g;
    const Value x = g.input("x", f64({2, 3}));
    const Value w = g.input("w", f64({2, 3, 1}));
    g.set_outputs({grouped_matmul(x, w, g.input("ids", i32({2})))});
    const Graph over = vmap(g, {"w", "ids"}, 2).graph;
    const Feeds feeds{{"x", random_tensor(1, f64({2, 3}))},
                      {"w", random_tensor(2, f64({2, 2, 3, 1}))},
                      {"ids", Tensor::of<std::int32_t>({2, 2}, {0, bad, 1, 0})}};
    const auto reports = [&](auto&& run) {
      try {
        run();
        ADD_FAILURE() << "nothing was reported";
      } catch (const UserError& e) {
        EXPECT_EQ(e.code(), ErrorCode::IndexOutOfRange) << e.what();
      }
    };
    reports([&] { (void)interpret(over, feeds); });
    reports([&] { (void)compile(over).run(feeds); });
  }
}

// [gmm-rest] each row goes through the two experts its router likes best, weighted by how much
TEST(GroupedMatmul, MixtureOfExpertsPicksSeveral) {
  Graph g;
  const Value x = g.input("x", f64({M, K}));
  const Value w = g.input("w", f64({E, K, N}));
  const Value router = g.input("router", f64({K, E}));
  const auto [gates, ids] = top_k(softmax(matmul(x, router)), {.k = 2});
  const Value each = grouped_matmul(x, w, ids);
  g.set_outputs({sum(each * reshape_to(gates, {M, 2, 1}), {1})});
  const Feeds feeds{{"x", random_tensor(1, f64({M, K}))},
                    {"w", random_tensor(2, f64({E, K, N}))},
                    {"router", random_tensor(3, f64({K, E}))}};
  // The same with every expert for every row, and those not picked left out of the sum.
  Graph dense;
  const Value dx = dense.input("x", f64({M, K}));
  const Value dw = dense.input("w", f64({E, K, N}));
  const Value odds = softmax(matmul(dx, dense.input("router", f64({K, E}))));
  const Value least = reduce(odds, {.op = ReduceKind::Min, .axes = {1}, .keep_dim = true});
  const Value kept = where(gt(odds, least), odds, scalar_like(odds, 0));
  const Value all = matmul(dx, dw);  // [E, M, N]
  dense.set_outputs({sum(all * reshape_to(transpose(kept, {.perm = {1, 0}}), {E, M, 1}), {0})});
  const Tensor expected = interpret(dense, feeds)[0];
  EXPECT_TRUE(close(interpret(g, feeds)[0], expected));
  EXPECT_TRUE(close(compile(g).run(feeds)[0], expected));
}

// Which rows follow each other must not matter to a row's own result. Rows of one expert are one
// product, so the bits are those of the product they are part of.
TEST(GroupedMatmul, OrderOfRowsDoesNotChangeTheirBits) {
  constexpr std::int64_t Rows = 64;
  Graph g;
  const Value x = g.input("x", f32({Rows, 40}));
  const Value w = g.input("w", f32({2, 40, 48}));
  g.set_outputs({grouped_matmul(x, w, g.input("ids", i32({Rows})))});
  const CompiledGraph compiled = compile(g);
  const Tensor rows = random_tensor(1, f32({Rows, 40}));
  const Tensor weights = random_tensor(2, f32({2, 40, 48}));
  std::vector<std::int32_t> halves(Rows);
  std::vector<std::int32_t> mixed(Rows);
  std::vector<double> moved(static_cast<std::size_t>(Rows * 40));
  const auto numbers = rows.numbers<double>();
  const auto place = [](std::int64_t i) { return i < Rows / 2 ? 2 * i : 2 * (i - Rows / 2) + 1; };
  for (std::int64_t i = 0; i < Rows; ++i) {
    halves[static_cast<std::size_t>(i)] = i < Rows / 2 ? 0 : 1;
    mixed[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i % 2);
    std::copy_n(numbers.begin() + i * 40, 40, moved.begin() + place(i) * 40);
  }
  const auto run = [&](const Tensor& in, const std::vector<std::int32_t>& ids) {
    return compiled.run(
        {{"x", in}, {"w", weights}, {"ids", Tensor::of<std::int32_t>({Rows}, ids)}})[0];
  };
  const Tensor sorted = run(rows, halves);
  const Tensor scattered = run(Tensor::from_numbers<double>(rows.type(), moved), mixed);
  for (std::int64_t i = 0; i < Rows; ++i) {
    EXPECT_TRUE(same(scattered.narrowed(0, place(i), 1), sorted.narrowed(0, i, 1))) << "row " << i;
  }
}

}  // namespace
}  // namespace ricci::rule_grouped_matmul_test
