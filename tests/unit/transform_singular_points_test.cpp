// The table of singular points: value, first derivative by both modes, second derivative by forward
// and by reverse over reverse; and the document that shows the same table.
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/ir/verify.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jet.h"
#include "ricci/transform/jvp.h"

#include "support/singular_points.h"
#include "support/tool.h"
#include "test_paths.h"

namespace ricci::testing::transform_singular_points_test {
namespace {

const std::string Document = RICCI_SOURCE_DIR "/docs/SINGULAR_POINTS.md";

Tensor vector_of(const std::vector<double>& v) {
  return Tensor::of<double>({static_cast<std::int64_t>(v.size())}, std::span<const double>(v));
}

Graph graph_of(const SingularPoint& p) {
  Graph g("f");
  const Value x = g.input("x", {DType::F64, {static_cast<std::int64_t>(p.at.size())}});
  const Value y = p.build(x);
  g.set_outputs({y.rank() == 0 ? y : sum(y)});
  verify(g);
  return g;
}

Tensor by_forward_mode(const Graph& g, const SingularPoint& p) {
  const Transformed t = jvp(g, {"x"});
  std::vector<double> out;
  for (std::size_t i = 0; i < p.at.size(); ++i) {
    std::vector<double> direction(p.at.size(), 0.0);
    direction[i] = 1;
    out.push_back(interpret(t.graph, {{"x", vector_of(p.at)},
                                      {t.names.at("tangent_x"), vector_of(direction)}})[1]
                      .item());
  }
  return vector_of(out);
}

class SingularPoints : public ::testing::TestWithParam<SingularPoint> {
 protected:
  const SingularPoint& p = GetParam();
  Graph graph = graph_of(p);
  Feeds feeds = {{"x", vector_of(p.at)}};
  Transformed gradient = value_and_grad(graph, {"x"}, GradOptions::training());
};

TEST_P(SingularPoints, HaveTheDerivativesOfTheTable) {
  const auto out = interpret(gradient.graph, feeds);
  EXPECT_TRUE(near_singular(out[0], {p.value})) << "value";
  EXPECT_TRUE(near_singular(out[1], p.first)) << "reverse mode";
  EXPECT_TRUE(near_singular(by_forward_mode(graph, p), p.first)) << "forward mode";
}

TEST_P(SingularPoints, HaveTheSecondDerivativesOfTheTable) {
  if (!p.second) return;
  const Transformed first = grad(graph, {"x"}, {.zero_missing_wrt = true, .external_seed = true});
  feeds.emplace(first.names.at("d_output"), Tensor::splat({DType::F64, {}}, 1.0));
  const Tensor ones = vector_of(std::vector<double>(p.at.size(), 1.0));

  const Transformed forward = jvp(first.graph, {"x"});
  Feeds along = feeds;
  along.emplace(forward.names.at("tangent_x"), ones);
  EXPECT_TRUE(near_singular(interpret(forward.graph, along)[1], *p.second))
      << "forward over reverse";
  const Transformed reverse = vjp(first.graph, {"x"}, GradOptions::training());
  Feeds seeded = feeds;
  seeded.emplace(reverse.names.at("d_output_0"), ones);
  EXPECT_TRUE(near_singular(interpret(reverse.graph, seeded)[1], *p.second))
      << "reverse over reverse";
  if (p.at.size() != 1) return;
  const Transformed curve = jet(graph, {"x"}, 2, {.line = true});
  const Feeds line = {{"x", vector_of(p.at)}, {curve.names.at("d1_x"), ones}};
  EXPECT_TRUE(near_singular(interpret(curve.graph, line)[2], *p.second)) << "by series";
}

std::vector<SingularPoint> all_points() {
  std::vector<SingularPoint> out;
  for (SingularSection& s : singular_points()) {
    for (SingularPoint& point : s.points) out.push_back(std::move(point));
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Table, SingularPoints, ::testing::ValuesIn(all_points()),
                         [](const auto& p) { return fmt::format("{:03}", p.index); });

TEST(SingularPointsDocument, IsWhatTheTableSays) {
  const std::string text = singular_points_document();
  if (std::getenv("RICCI_UPDATE_GOLDEN") != nullptr) std::ofstream(Document) << text;
  EXPECT_EQ(text, read_text(Document)) << "RICCI_UPDATE_GOLDEN=1 writes it";
}

}  // namespace
}  // namespace ricci::testing::transform_singular_points_test
