// A gradient as two programs: what one gives the other needs, and nothing is computed twice.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/split.h"

#include "support/compare.h"

namespace ricci::transform_split_test {
namespace {

Graph network() {
  Graph g("net");
  const Value x = g.input("x", f32({4, 3}));
  const Value w = g.param("w", f32({3, 5}));
  const Value v = g.param("v", f32({5, 1}));
  const Value h = tanh(matmul(x, w));
  g.set_outputs({sum(matmul(h, v) * 0.5, {0, 1}), h});
  return g;
}

Feeds some_feeds(const Graph& g) {
  Feeds feeds;
  double next = 0.3;
  for (const NodeId id : g.leaves()) {
    const Type& type = g.node(id).types[0];
    std::vector<double> numbers(static_cast<std::size_t>(*type.numel()));
    for (double& n : numbers) n = std::sin(next += 0.7);
    feeds.emplace(*g.node(id).leaf_name(), Tensor::from_numbers<double>(type, numbers));
  }
  return feeds;
}

std::size_t count(const Graph& g, std::string_view op) {
  std::size_t n = 0;
  for (const Node& node : g.nodes()) n += node.op.mnemonic() == op ? 1 : 0;
  return n;
}

// [training-share-activations] The split that pipelines use: forward gives values and residuals,
// backward makes gradients of them, in another place, without running the forward again.
TEST(SplitGradients, TwoProgramsGiveWhatOneGives) {
  const Graph g = network();
  const SplitGradient split = split_vjp(g, {"w", "v", "x"});
  verify(split.forward.graph);
  verify(split.backward);
  EXPECT_EQ(split.forward.graph.outputs().size(), 2 + split.residuals.size());
  EXPECT_EQ(count(split.backward, "tanh"), 0U) << "the forward is not computed again";
  EXPECT_EQ(count(split.forward.graph, "tanh"), 1U);

  const Feeds feeds = some_feeds(g);
  const Transformed whole = vjp(g, {"w", "v", "x"});
  Feeds seeded = feeds;
  const Tensor d0 = Tensor::splat(g.type(g.outputs()[0]), 0.5);
  const Tensor d1 = Tensor::splat(g.type(g.outputs()[1]), -1.5);
  seeded.insert({{"d_output_0", d0}, {"d_output_1", d1}});
  const std::vector<Tensor> expected = compile(whole.graph).run(seeded);

  const std::vector<Tensor> forward = compile(split.forward.graph).run(feeds);
  Feeds back = {{"d_output_0", d0}, {"d_output_1", d1}};
  for (std::size_t i = 0; i < split.residuals.size(); ++i) {
    back.emplace(split.residuals[i], forward[2 + i]);
  }
  // What it reads of the graph's own inputs it has under their names.
  for (const NodeId id : split.backward.leaves()) {
    const std::string& name = *split.backward.node(id).leaf_name();
    if (feeds.contains(name)) back.emplace(name, feeds.at(name));
  }
  const std::vector<Tensor> gradients = compile(split.backward).run(back);
  ASSERT_EQ(gradients.size(), 3U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(testing::close(forward[i], expected[i]));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(testing::close(gradients[i], expected[2 + i]));
}

}  // namespace
}  // namespace ricci::transform_split_test
