// The table of singular points on a device: derivatives of the first and second order, all points
// in one program.
#include "support/singular_points.h"

#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/ir/rebuild.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"

#include "support/guarded_run.h"

namespace ricci::testing::singular_points_test {
namespace {

Tensor vector_of(const std::vector<double>& v) {
  return Tensor::of<double>({static_cast<std::int64_t>(v.size())}, std::span<const double>(v));
}

// The gradient by x, and its derivative along (1, …, 1).
Graph derivatives_of(const SingularPoint& p) {
  Graph g("f");
  const Value x = g.input("x", {DType::F64, {static_cast<std::int64_t>(p.at.size())}});
  const Value y = p.build(x);
  g.set_outputs({y.rank() == 0 ? y : sum(y)});
  const Transformed gradient = grad(g, {"x"}, {.zero_missing_wrt = true, .internal_seed = true});
  return jvp(gradient.graph, {"x"}).graph;
}

TEST(BackendSingularPoints, HaveTheDerivativesOfTheTable) {
  Graph all("all");
  Feeds feeds;
  std::vector<SingularPoint> points;
  std::vector<Value> outputs;
  for (const SingularSection& section : singular_points()) {
    for (const SingularPoint& p : section.points) {
      const std::string name = fmt::format("x{}", points.size());
      const Value x = all.input(name, {DType::F64, {static_cast<std::int64_t>(p.at.size())}});
      const Value ones = all.constant(vector_of(std::vector<double>(p.at.size(), 1.0)));
      for (const Value& v : inline_subgraph(derivatives_of(p), std::array{x, ones}, all)) {
        outputs.push_back(v);
      }
      feeds.emplace(name, vector_of(p.at));
      points.push_back(p);
    }
  }
  all.set_outputs(outputs);
  for (const bool fuse : {true, false}) {
    const std::vector<Tensor> out = run_between_guards(all, feeds, {.fuse = fuse});
    for (std::size_t i = 0; i < points.size(); ++i) {
      const SingularPoint& p = points[i];
      EXPECT_TRUE(near_singular(out[2 * i], p.first)) << ::testing::PrintToString(p);
      if (!p.second) continue;
      EXPECT_TRUE(near_singular(out[2 * i + 1], *p.second))
          << "second derivative of " << ::testing::PrintToString(p);
    }
  }
}

}  // namespace
}  // namespace ricci::testing::singular_points_test
