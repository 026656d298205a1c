// What schedules refuse, and what of them is decided before a program runs.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"
#include "ricci/model/schedule.h"
#include "ricci/support/error.h"

namespace ricci::testing::model_schedule_test {
namespace {

TEST(Schedule, ANumberIsTheSameAtAllSteps) {
  const Schedule s = 0.25;
  EXPECT_EQ(s.constant(), 0.25);
  EXPECT_EQ(s.at(1000), 0.25);
  EXPECT_FALSE(warm_up(0.1, 3).constant());
  EXPECT_EQ((s * Schedule(2.0)).constant(), 0.5);
}

TEST(Schedule, IsTheSameInBothFloats) {
  const Schedule s = joined({warm_up(0.5, 4), inverse_sqrt(0.5, 3)}, {4});
  Graph g("rate");
  g.set_outputs({s.at(g.input("step", f32({})))});
  for (std::int64_t t = 0; t < 12; ++t) {
    const Tensor step = Tensor::splat(f32({}), static_cast<double>(t));
    EXPECT_NEAR(interpret(g, {{"step", step}})[0].item(), s.at(t), 1e-6) << t;
  }
  EXPECT_NEAR(s.at(4 + 11), 0.5 * std::sqrt(3.0 / 12), 1e-12);
}

TEST(Schedule, OwnRulesAreSchedules) {
  const Schedule s([](Value step) { return 1.0 / (step + 1.0); });
  EXPECT_NEAR(s.at(3), 0.25, 1e-12);
}

TEST(Schedule, RefusesWhatMakesNoSense) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW((void)constant(-1), UserError);
  EXPECT_THROW((void)constant(nan), UserError);
  EXPECT_THROW((void)linear(0, 1, {}), UserError);
  EXPECT_THROW((void)linear(0, 1, {.steps = 1, .begin = -1}), UserError);
  EXPECT_THROW((void)polynomial(0, 1, {.steps = 3, .power = -1}), UserError);
  EXPECT_THROW((void)cosine(1, {.warm_up = 5, .steps = 5}), UserError);
  EXPECT_THROW((void)cosine(1, {.steps = std::int64_t{1} << 40}), UserError);
  EXPECT_THROW((void)exponential(1, {}), UserError);
  EXPECT_THROW((void)one_cycle(1, {.steps = 10, .warm_up = 1}), UserError);
  EXPECT_THROW((void)one_cycle(1, {.steps = 10, .start_factor = 0}), UserError);
  EXPECT_THROW((void)piecewise(1, {{5, 0.5}, {5, 0.2}}), UserError);
  EXPECT_THROW((void)warm_up(1, 0), UserError);
  EXPECT_THROW((void)joined({}, {}), UserError);
  EXPECT_THROW((void)joined({1.0, 0.5}, {}), UserError);
  EXPECT_THROW((void)joined({1.0, 0.5, 0.2}, {4, 3}), UserError);
}

}  // namespace
}  // namespace ricci::testing::model_schedule_test
