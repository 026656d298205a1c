// Products of a scan's steps made as one: what leaves the loop and what stays, the same values on
// every device, and gradients through it.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/build/recurrent.h"
#include "ricci/build/reduce.h"
#include "ricci/compiler/rewrite/loops.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "backend/agreement.h"
#include "support/compare.h"
#include "support/every_device.h"

namespace ricci::testing::joined_products_test {
namespace {

constexpr std::int64_t Steps = 5;
constexpr std::int64_t Rows = 9;
constexpr std::int64_t Width = 48;  // products large enough to be joined

class BackendJoinedProducts : public ::testing::Test {
 protected:
  Value in(const std::string& name, const Type& type) {
    feeds_.emplace(name, random_tensor(feeds_.size() + 1, type, -0.5, 0.5));
    return graph_.input(name, type);
  }

  // The pass changes no value, and gives a scan of so many carries and xs.
  void expect_joined(std::vector<Value> outputs, std::int64_t carries, std::int64_t xs,
                     bool products_left = false) {
    graph_.set_outputs(std::move(outputs));
    const Graph joined = join_products(graph_).graph;
    const std::vector<Tensor> expected = interpret(graph_, feeds_);
    const std::vector<Tensor> actual = interpret(joined, feeds_);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(close(actual[i], expected[i])) << print(joined);
    }
    std::size_t scans = 0;
    for (const Node& node : joined.nodes()) {
      const auto* scan = node.op.as<op::Scan>();
      if (scan == nullptr) continue;
      ++scans;
      EXPECT_EQ(scan->num_carry, carries) << print(joined);
      EXPECT_EQ(scan->num_xs, xs) << print(joined);
      bool products = false;
      for (const Node& inner : node.body("body")->nodes()) {
        products = products || inner.op.is<op::Matmul>();
      }
      EXPECT_EQ(products, products_left) << print(joined);
    }
    EXPECT_EQ(scans, 1U);
    expect_agreement_everywhere(graph_, feeds_);
  }

  Graph graph_;
  Feeds feeds_;
};

TEST_F(BackendJoinedProducts, OfRowsBeforeTheLoop) {
  const Value h = in("h", f64({Rows, Width}));
  const Value w = in("w", f64({Width, Width}));
  const Value x = in("x", f64({Steps, Rows, Width}));
  const auto out =
      scan(std::vector{h}, {.bcasts = {w}, .xs = {x}}, [](Graph&, std::span<const Value> b) {
        return std::vector{tanh(b[0] * 0.5 + matmul(b[2], b[1]))};
      });
  expect_joined(out, 1, 2);
}

TEST_F(BackendJoinedProducts, OfStackedRowsBehindIt) {
  const Value h = in("h", f64({Rows, Width}));
  const Value w = in("w", f64({Width, Width}));
  const Value x = in("x", f64({Steps, Rows, Width}));
  const auto out = scan(std::vector{h}, {.bcasts = {w}, .xs = {x}, .reverse = true},
                        [](Graph&, std::span<const Value> b) {
                          const Value next = sin(b[0] + b[2]);
                          return std::vector{next, matmul(next, transpose(b[1], {.perm = {1, 0}}))};
                        });
  expect_joined(out, 1, 1);
}

TEST_F(BackendJoinedProducts, ThatACarrySumsUp) {
  const Value h = in("h", f64({Rows, Width}));
  const Value total = in("total", f64({Width, Width}));
  const Value bias = in("bias", f64({1, Width}));
  const Value x = in("x", f64({Steps, Rows, Width}));
  const auto out =
      scan(std::vector{h, total, bias}, {.xs = {x}}, [](Graph&, std::span<const Value> b) {
        const Value next = cos(b[0] + b[3]);
        const Value product = matmul(transpose(b[3], {.perm = {1, 0}}), next);
        const Value turned =
            transpose(matmul(transpose(b[3], {.perm = {1, 0}}), next * 2.0), {.perm = {1, 0}});
        return std::vector{next, product + b[1] + turned, b[2] + sum(next, {0}, true), next};
      });
  expect_joined(out, 1, 1);
}

TEST_F(BackendJoinedProducts, WithSumsAlongAxes) {
  const Value h = in("h", f64({Rows, Width}));
  const Value total = in("total", f64({Width, Width}));
  const Value bias = in("bias", f64({1, Width}));
  const Value x = in("x", f64({Steps, Rows, Width}));
  const auto out =
      scan(std::vector{h, total, bias}, {.xs = {x}}, [](Graph&, std::span<const Value> b) {
        const Value next = cos(b[0] + b[3]);
        const Value product = matmul(transpose(b[3], {.perm = {1, 0}}), next);
        return std::vector{next, b[1] + product, b[2] + sum(next, {0}, true)};
      });
  expect_joined(out, 1, 1);
}

TEST_F(BackendJoinedProducts, UnlessAStepReadsTheSum) {
  const Value h = in("h", f64({Rows, Width}));
  const Value total = in("total", f64({Width, Width}));
  const Value x = in("x", f64({Steps, Rows, Width}));
  const auto out = scan(std::vector{h, total}, {.xs = {x}}, [](Graph&, std::span<const Value> b) {
    const Value next = cos(b[0] + b[2] + sum(b[1], {0, 1}));
    return std::vector{next, b[1] + matmul(transpose(b[2], {.perm = {1, 0}}), next)};
  });
  expect_joined(out, 2, 1, true);
}

TEST_F(BackendJoinedProducts, UnlessTheyAreSmall) {
  const Value h = in("h", f64({1, 4}));
  const Value w = in("w", f64({4, 4}));
  const Value x = in("x", f64({Steps, 1, 4}));
  const auto out =
      scan(std::vector{h}, {.bcasts = {w}, .xs = {x}}, [](Graph&, std::span<const Value> b) {
        return std::vector{tanh(b[0] + matmul(b[2], b[1]))};
      });
  expect_joined(out, 1, 1, true);
}

TEST_F(BackendJoinedProducts, ALoopOfSumsAlone) {
  const Value total = in("total", f64({Width, Width}));
  const Value a = in("a", f64({Steps, Rows, Width}));
  const Value b = in("b", f64({Steps, Rows, Width}));
  const auto out = scan(std::vector{total}, {.xs = {a, b}}, [](Graph&, std::span<const Value> v) {
    return std::vector{v[0] + matmul(transpose(v[1], {.perm = {1, 0}}), v[2])};
  });
  graph_.set_outputs(out);
  expect_agreement_everywhere(graph_, feeds_);
}

// The gradient's sum over steps of hᵀ·d is one product; the same bits on any number of threads.
TEST_F(BackendJoinedProducts, InTheGradientOfALayer) {
  const Value x = in("x", f32({Steps, Rows, Width}));
  const Value h0 = in("h0", f32({Rows, Width}));
  const Value c0 = in("c0", f32({Rows, Width}));
  const Value w_x = in("w_x", f32({Width, 4 * Width}));
  const Value w_h = in("w_h", f32({Width, 4 * Width}));
  const Value b = in("b", f32({4 * Width}));
  graph_.set_outputs({sum(lstm(x, h0, c0, w_x, w_h, b).out, {0, 1, 2})});
  const Graph gradient = value_and_grad(graph_, {"x", "w_x", "w_h", "b", "h0", "c0"}).graph;
  expect_agreement_everywhere(gradient, feeds_);
  if (!has_device("cpu")) return;
  const std::vector<Tensor> expected = compile(gradient, Device::cpu(1)).run(feeds_);
  for (const int threads : {2, 3}) {
    const std::vector<Tensor> actual = compile(gradient, Device::cpu(threads)).run(feeds_);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(actual[i].identical(expected[i])) << i;
    }
  }
}

}  // namespace
}  // namespace ricci::testing::joined_products_test
