// L-BFGS: known minima, when it stops, and what it refuses.
#include "ricci/model/lbfgs.h"

#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/support/error.h"

#include "runtime/models.h"

namespace ricci::testing {
namespace {

// Σ 100 (p[2i+1] - p[2i]²)² + (1 - p[2i])², from rows of pairs.
Graph rosenbrock(DType dtype = DType::F64) {
  Graph g("rosenbrock");
  const Value x = g.param("x", {dtype, {2}});
  const Value y = g.param("y", {dtype, {2}});
  g.set_outputs({sum(square(y - square(x)) * 100.0 + square(1.0 - x))});
  return g;
}

Feeds far_away(DType dtype = DType::F64) {
  return {{"x", Tensor::from_numbers<double>({dtype, {2}}, std::vector<double>{-1.2, 2})},
          {"y", Tensor::from_numbers<double>({dtype, {2}}, std::vector<double>{1, -1})}};
}

TEST(RuntimeLbfgs, FindsTheEndOfACurvedValley) {
  for (const LineSearch search : {LineSearch::StrongWolfe, LineSearch::Backtracking}) {
    const LbfgsResult found =
        minimize(rosenbrock(), far_away(), {}, {.gradient_tolerance = 1e-8, .line_search = search});
    EXPECT_EQ(found.stopped, LbfgsStop::SmallGradient) << name(found.stopped);
    for (const char* name : {"x", "y"}) {
      EXPECT_TRUE(close(found.params.at(name), Tensor::splat(f64({2}), 1.0), {1e-6, 1e-6}));
    }
    EXPECT_LT(found.loss, 1e-12);
    EXPECT_LE(found.largest_gradient, 1e-8);
    EXPECT_GT(found.evaluations, found.iterations);
  }
}

TEST(RuntimeLbfgs, TakesTheSameWayDownALossOfAnotherScale) {
  const LbfgsResult plain =
      minimize(rosenbrock(), far_away(), {}, {.gradient_tolerance = 1e-6, .loss_tolerance = 0});
  constexpr double Scale = 0x1p50;
  Graph steep = rosenbrock();
  steep.set_outputs({steep.output_values()[0] * Scale});
  const LbfgsResult found =
      minimize(steep, far_away(), {}, {.gradient_tolerance = 1e-6 * Scale, .loss_tolerance = 0});
  EXPECT_EQ(found.stopped, LbfgsStop::SmallGradient) << name(found.stopped);
  EXPECT_EQ(found.iterations, plain.iterations);
  EXPECT_TRUE(close(found.params.at("x"), plain.params.at("x"), {1e-6, 1e-6}));
}

TEST(RuntimeLbfgs, WorksOnNarrowerParams) {
  const LbfgsResult found =
      minimize(rosenbrock(DType::F32), far_away(DType::F32), {}, {.gradient_tolerance = 1e-3});
  EXPECT_EQ(found.params.at("x").dtype(), DType::F32);
  EXPECT_TRUE(close(found.params.at("x"), Tensor::splat(f32({2}), 1.0), {1e-3, 1e-3}));
}

TEST(RuntimeLbfgs, StopsWhenToldTo) {
  EXPECT_EQ(minimize(rosenbrock(), far_away(), {}, {.max_iterations = 3}).stopped,
            LbfgsStop::MaxIterations);
  EXPECT_EQ(minimize(rosenbrock(), far_away(), {}, {.loss_tolerance = 0.5}).stopped,
            LbfgsStop::SmallChange);
  std::vector<double> losses;
  const LbfgsResult observed = minimize(
      rosenbrock(), far_away(), {}, {.observer = [&](std::int64_t iteration, double loss, double) {
        losses.push_back(loss);
        return iteration < 5;
      }});
  EXPECT_EQ(observed.stopped, LbfgsStop::Observer);
  ASSERT_EQ(losses.size(), 5U);
  for (std::size_t i = 1; i < losses.size(); ++i) EXPECT_LT(losses[i], losses[i - 1]);
}

TEST(RuntimeLbfgs, MovesOnlyWhatItIsTold) {
  const LbfgsResult found = minimize(rosenbrock(), far_away(), {}, {.params = {"y"}});
  EXPECT_TRUE(same(found.params.at("x"), far_away().at("x")));
  const Tensor squares = Tensor::of<double>({2}, {1.44, 4});
  EXPECT_TRUE(close(found.params.at("y"), squares, {1e-6, 1e-6}));
}

// Beyond a wall the loss is not a number: such steps are too long, not the end.
TEST(RuntimeLbfgs, StaysWhereTheLossIsFinite) {
  Graph g("wall");
  const Value x = g.param("x", f64({}));
  g.set_outputs({x * 3.0 - log(x)});
  const LbfgsResult found = minimize(g, {{"x", Tensor::splat(f64({}), 40.0)}});
  EXPECT_NEAR(found.params.at("x").item(), 1.0 / 3, 1e-5);
}

TEST(RuntimeLbfgs, RefusesWhatMakesNoSense) {
  const auto refused = [](const Feeds& start, const LbfgsOptions& options) {
    EXPECT_THROW((void)minimize(rosenbrock(), start, {}, options), UserError);
  };
  refused(far_away(), {.history = 0});
  refused(far_away(), {.decrease = 0});
  refused(far_away(), {.curvature = 1});
  refused(far_away(), {.params = {"z"}});
  refused(far_away(), {.params = {"x", "x"}});
  refused({{"x", Tensor::zeros(f64({2}))}}, {});
  Feeds more = far_away();
  more.emplace("z", Tensor::zeros(f64({})));
  refused(more, {});
  Feeds bad = far_away();
  bad.insert_or_assign("x", Tensor::splat(f64({2}), std::nan("")));
  refused(bad, {});
  Graph many("many");
  many.set_outputs({many.param("p", f64({3}))});
  EXPECT_THROW((void)minimize(many, {{"p", Tensor::zeros(f64({3}))}}), UserError);
}

}  // namespace
}  // namespace ricci::testing
