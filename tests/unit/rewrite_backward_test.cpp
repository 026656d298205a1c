// Gradients written without ops of their own.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/unfuse.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/grad.h"

#include "support/compare.h"

namespace ricci::testing::rewrite_backward_test {
namespace {

// A small network for images, with strides, dilation, groups, overlapping windows and padding.
Graph image_loss() {
  Graph g("image_loss");
  const Value x = g.input("x", f64({2, 2, 9, 8}));
  const Value w = g.param("w", f64({4, 2, 3, 2}));
  const Value v = g.param("v", f64({6, 2, 2, 2}));
  const Value table = g.param("table", f64({5, 6}));
  const Value rows = g.input("rows", Type{DType::I32, {2}});
  const Value h = conv(x, w, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}});
  const Value p = pool(
      h, {.kind = ReduceKind::Max, .kernel_size = {3, 2}, .stride = {2, 1}, .padding = {1, 1}});
  const Value q = conv(tanh(p), v, {.padding = {1, 0}, .groups = 2});
  g.set_outputs({sum(mean(q, {2, 3}) * gather(table, rows, {.axis = 0}))});
  return g;
}

TEST(DecomposeBackward, WindowsAndPicksAreWrittenOut) {
  const Graph gradient = value_and_grad(image_loss(), {"x", "w", "v", "table"}).graph;
  const PassResult flat = decompose_backward_ops(gradient);
  verify(flat.graph);
  std::size_t before = 0;
  for (const Node& node : gradient.nodes()) {
    before += node.op.mnemonic().find("_backward") != std::string_view::npos ? 1 : 0;
  }
  EXPECT_EQ(before, 7U);  // two for each convolution, one for pooling, tanh and gather each
  for (const Node& node : flat.graph.nodes()) {
    EXPECT_EQ(node.op.mnemonic().find("_backward"), std::string_view::npos) << node.op.mnemonic();
  }
  const Feeds feeds{{"x", random_tensor(1, f64({2, 2, 9, 8}), -1, 1)},
                    {"w", random_tensor(2, f64({4, 2, 3, 2}), -1, 1)},
                    {"v", random_tensor(3, f64({6, 2, 2, 2}), -1, 1)},
                    {"table", random_tensor(4, f64({5, 6}), -1, 1)},
                    {"rows", Tensor::from_numbers<std::int64_t>(Type{DType::I32, {2}},
                                                                std::vector<std::int64_t>{3, 3})}};
  const auto expected = interpret(gradient, feeds);
  const auto actual = interpret(flat.graph, feeds);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(close(actual[i], expected[i])) << "output " << i;
  }
}

}  // namespace
}  // namespace ricci::testing::rewrite_backward_test
