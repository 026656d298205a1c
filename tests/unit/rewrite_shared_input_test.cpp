// Products of one value with several params become one: which do, and in what order.
#include <algorithm>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/text.h"
#include "ricci/ir/verify.h"
#include "ricci/op/ops.h"

#include "support/compare.h"

namespace ricci::testing::rewrite_shared_input_test {
namespace {

std::size_t count_products(const Graph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.nodes(), [](const Node& node) { return node.op.is<op::Matmul>(); }));
}

Feeds feeds_for(const Graph& graph) {
  Feeds feeds;
  for (const NodeId id : graph.leaves()) {
    feeds.emplace(*graph.node(id).leaf_name(), random_tensor(id + 1, graph.node(id).types[0]));
  }
  return feeds;
}

// The fused graph, checked to give the same.
Graph fused(const Graph& graph, std::int64_t most_work = 1 << 18) {
  const Graph out = fuse_shared_input_matmul(graph, {.most_work = most_work}).graph;
  verify(out);
  const Feeds feeds = feeds_for(graph);
  const std::vector<Tensor> expected = interpret(graph, feeds);
  const std::vector<Tensor> got = interpret(out, feeds);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(close(got[i], expected[i])) << i;
  EXPECT_EQ(graph.leaves().size(), out.leaves().size());
  for (std::size_t k = 0; k < graph.leaves().size(); ++k) {
    EXPECT_EQ(*graph.node(graph.leaves()[k]).leaf_name(), *out.node(out.leaves()[k]).leaf_name());
  }
  return out;
}

// [weight-prepack] In node order, whatever the params are called and wherever they are declared.
TEST(RewriteSharedInput, ProductsAreJoinedInNodeOrder) {
  Graph g("qkv");
  const Value x = g.input("x", f64({2, 3, 4}));
  const Value last = matmul(x, g.param("z", f64({4, 2})));
  const Value middle = matmul(x, g.param("m", f64({4, 5})));
  const Value first = matmul(x, transpose(g.param("a", f64({3, 4})), {.perm = {1, 0}}));
  g.set_outputs({first, middle, last});
  const Graph out = fused(g);
  EXPECT_EQ(count_products(out), 1U);
  EXPECT_EQ(print(out), R"(graph @qkv {
  %x = input "x" : f64[2, 3, 4]
  %z = param "z" : f64[4, 2]
  %m = param "m" : f64[4, 5]
  %a = param "a" : f64[3, 4]
  %0 = transpose %a {perm = [1, 0]} : f64[4, 3]
  %1 = concat %z, %m, %0 {axis = 1} : f64[4, 10]
  %2 = matmul %x, %1 : f64[2, 3, 10]
  %3 = narrow %2 {axis = 2, start = 0, len = 2} : f64[2, 3, 2]
  %4 = narrow %2 {axis = 2, start = 2, len = 5} : f64[2, 3, 5]
  %5 = narrow %2 {axis = 2, start = 7, len = 3} : f64[2, 3, 3]
  return %5, %4, %3
}
)");
}

// [weight-prepack] [fusion-guards] What one start saves is nothing beside a large product.
TEST(RewriteSharedInput, LargeProductsStayApart) {
  Graph g("large");
  const Value x = g.input("x", f32({2, 4}));
  std::vector<Value> out;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    out.push_back(matmul(x, g.param(name, f32({4, 3}))));  // 24 multiplications
  }
  g.set_outputs(out);
  EXPECT_EQ(count_products(fused(g, 23)), 5U);
  EXPECT_EQ(count_products(fused(g, 47)), 5U);
  EXPECT_EQ(count_products(fused(g, 48)), 3U);
  EXPECT_EQ(count_products(fused(g, 72)), 2U);
  EXPECT_EQ(count_products(fused(g, 120)), 1U);
}

TEST(RewriteSharedInput, OnlyMatricesOfParamsAreJoined) {
  Graph g("others");
  const Value x = g.input("x", f32({2, 4}));
  const Value y = g.input("y", f32({2, 4}));
  const Value a = g.param("a", f32({4, 4}));
  const Value first = matmul(x, a);
  g.set_outputs({first, matmul(y, g.param("b", f32({4, 4}))),        // another value
                 matmul(x, g.input("c", f32({4, 4}))),               // no param
                 matmul(x, exp(a)),                                  // computed
                 matmul(x, g.param("d", f32({3, 4, 4}))),            // many matrices
                 matmul(x, matmul(transpose_last(first), first))});  // of a product of the group
  EXPECT_EQ(count_products(fused(g)), count_products(g));
}

TEST(RewriteSharedInput, UnknownSizesAreLeftAlone) {
  Graph g("symbolic");
  const Value x = g.input("x", f32({"n", 4}));
  g.set_outputs({matmul(x, g.param("a", f32({4, 4}))), matmul(x, g.param("b", f32({4, 4})))});
  EXPECT_FALSE(fuse_shared_input_matmul(g).changed);
}

}  // namespace
}  // namespace ricci::testing::rewrite_shared_input_test
