// [calibration-options] Ranges from what values are on samples: every method, per tensor and per
// channel, with and without zero points, on every device.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/model/calibration.h"

#include "support/compare.h"

namespace ricci::testing::model_calibration_test {
namespace {

Tensor numbers(const std::vector<double>& values) {
  return Tensor::from_numbers<double>(f32({Dim(std::ssize(values))}), values);
}

// Mostly within ±1, evenly, with one far away.
std::vector<double> with_outlier(double outlier) {
  std::vector<double> out;
  for (int i = -5000; i <= 5000; ++i) out.push_back(i / 5000.0);
  out.push_back(outlier);
  return out;
}

double scale_of(const std::vector<double>& values, const RangeOptions& options) {
  return params_for(numbers(values), std::nullopt, options).scales[0].value;
}

TEST(ModelCalibration, TheLargestMagnitudeGivesSymmetricScales) {
  const CodeParams p = params_for(numbers({-2.54, 1, 0}), std::nullopt, {.symmetric = true});
  EXPECT_NEAR(p.scales[0].value, 0.02, 1e-8);
  EXPECT_TRUE(p.zero_points.empty());
  EXPECT_FALSE(p.axis);
  EXPECT_NEAR(params_for(numbers({0, 0}), std::nullopt, {.symmetric = true}).scales[0].value, 1e-6,
              1e-12);
}

TEST(ModelCalibration, ZeroPointsUseAllCodes) {
  const CodeParams p = params_for(numbers({-1, 4.1}), std::nullopt, {});
  EXPECT_NEAR(p.scales[0].value, 5.1 / 255, 1e-7);
  EXPECT_EQ(p.zero_points, std::vector<std::int64_t>{-78});
  const CodeParams positive = params_for(numbers({1, 2.55}), std::nullopt, {.to = CodeKind::U8});
  EXPECT_NEAR(positive.scales[0].value, 0.01, 1e-8);
  EXPECT_EQ(positive.zero_points, std::vector<std::int64_t>{0});
  const CodeParams four =
      params_for(numbers({-7, 1}), std::nullopt, {.symmetric = true, .to = CodeKind::I4});
  EXPECT_NEAR(four.scales[0].value, 1, 1e-7);
}

TEST(ModelCalibration, ChannelsHaveScalesOfTheirOwn) {
  const Tensor t = Tensor::of<float>({2, 3}, {1.27F, -12.7F, 0, 0.5F, 3, 127});
  const CodeParams p = params_for(t, Axis(1), {.symmetric = true});
  ASSERT_EQ(p.scales.size(), 3U);
  EXPECT_NEAR(p.scales[0].value, 0.01, 1e-8);
  EXPECT_NEAR(p.scales[1].value, 0.1, 1e-7);
  EXPECT_NEAR(p.scales[2].value, 1, 1e-6);
  EXPECT_EQ(params_for(t, Axis(-2), {.symmetric = true}).scales.size(), 2U);
}

TEST(ModelCalibration, MethodsLeaveOutliersOut) {
  const std::vector<double> values = with_outlier(100);
  const double all = scale_of(values, {.symmetric = true});
  EXPECT_NEAR(all, 100.0 / 127, 1e-5);
  const double most =
      scale_of(values, {.method = RangeMethod::Percentile, .percentile = 99.9, .symmetric = true});
  EXPECT_NEAR(most, 1.0 / 127, 0.05 / 127);
  // One of ten thousand at 100 costs (100 - 1)² when it is cut off; all others have their step²/12.
  EXPECT_LT(scale_of(values, {.method = RangeMethod::Entropy, .symmetric = true}), all / 2);
  const double least = scale_of(
      with_outlier(3), {.method = RangeMethod::Mse, .symmetric = true, .to = CodeKind::I4});
  EXPECT_LT(least, 3.0 / 7);
  EXPECT_GT(least, 0.9 / 7);
}

// The range by squares is at least as good as all of it, measured with the codes themselves.
TEST(ModelCalibration, LeastSquaresAreNoWorse) {
  std::vector<double> values;
  for (int i = 1; i <= 20000; ++i) {  // a long tail
    const double u = (i - 0.5) / 20000;
    values.push_back((i % 2 == 0 ? 1 : -1) * -std::log(u));
  }
  const auto error = [&](const CodeParams& p, double low, double high) {
    double total = 0;
    const double zero = p.zero_points.empty() ? 0 : static_cast<double>(p.zero_points[0]);
    for (const double x : values) {
      const double code = std::clamp(std::nearbyint(x / p.scales[0].value) + zero, low, high);
      total += std::pow(x - (code - zero) * p.scales[0].value, 2);
    }
    return total;
  };
  for (const bool symmetric : {false, true}) {
    const RangeOptions all{.symmetric = symmetric, .to = CodeKind::I4};
    RangeOptions squares = all;
    squares.method = RangeMethod::Mse;
    const double low = symmetric ? -7 : -8;
    EXPECT_LT(error(params_for(numbers(values), std::nullopt, squares), low, 7),
              0.5 * error(params_for(numbers(values), std::nullopt, all), low, 7));
  }
}

TEST(ModelCalibration, PercentilesOfOneSignKeepZero) {
  std::vector<double> values(1000, 0.0);  // as relu gives them
  for (int i = 0; i < 1000; ++i) values.push_back(i / 1000.0);
  values.push_back(50);
  const CodeParams p = params_for(numbers(values), std::nullopt,
                                  {.method = RangeMethod::Percentile, .percentile = 99.9});
  EXPECT_EQ(p.zero_points[0], -128);
  EXPECT_NEAR(p.scales[0].value, 1.0 / 255, 0.02 / 255);
}

Graph layers() {
  Graph g("layers");
  const Value x = g.input("x", f32({Dim::symbol("n"), 4}));
  const Value w = g.param("w", f32({4, 3}));
  const Value h = relu(matmul(x, w)).named("h");
  g.set_outputs({sum(h)});
  return g;
}

Feeds batch(std::uint64_t seed, std::int64_t rows) {
  return {{"x", random_tensor(seed, f32({rows, 4}))}, {"w", random_tensor(9, f32({4, 3}))}};
}

// The graph under a device, or the interpreter, for several batches of several sizes.
QuantRecord calibrated(const std::optional<Device>& device) {
  const Graph g = layers();
  Calibration seen(g, {{"x"}, {"%h", 1}, {"w", 1, RangeOptions{.symmetric = true}}}, {}, device);
  seen.observe(batch(1, 5));
  seen.observe(batch(2, 7));
  return seen.record();
}

TEST(ModelCalibration, TapsAreNamedAndBatchesAddUp) {
  const QuantRecord record = calibrated(std::nullopt);
  const Graph g = layers();
  ASSERT_EQ(record.size(), 3U);
  const CodeParams& x = record.at({*g.find("x"), 0});
  double low = 0;
  double high = 0;
  for (const auto& [seed, rows] : {std::pair{1U, 5}, std::pair{2U, 7}}) {
    for (const double v : batch(seed, rows).at("x").numbers<double>()) {
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  EXPECT_NEAR(x.scales[0].value, (high - low) / 255, 1e-7);
  EXPECT_EQ(record.at({*g.find("w"), 0}).scales.size(), 3U);
  EXPECT_TRUE(record.at({*g.find("w"), 0}).zero_points.empty());
}

TEST(ModelCalibration, EveryDeviceSeesTheSame) {
  const QuantRecord expected = calibrated(std::nullopt);
  for (const DeviceListing& l : Device::all()) {
    if (!l.why_not.empty()) continue;
    const QuantRecord record = calibrated(Device::named(l.name));
    ASSERT_EQ(record.size(), expected.size());
    for (const auto& [value, params] : expected) {
      for (std::size_t c = 0; c < params.scales.size(); ++c) {
        EXPECT_NEAR(record.at(value).scales[c].value, params.scales[c].value, 1e-7) << l.name;
      }
    }
  }
}

TEST(ModelCalibration, MistakesAreSaid) {
  const Graph g = layers();
  EXPECT_THROW(Calibration(g, {{"%nothing"}}), UserError);
  EXPECT_THROW(Calibration(g, {{"x"}, {"x"}}), UserError);
  EXPECT_THROW(Calibration(g, {{"x"}}, {.symmetric = true, .to = CodeKind::U8}), UserError);
  EXPECT_THROW(Calibration(g, {{"x"}}, {.method = RangeMethod::Percentile, .percentile = 10}),
               UserError);
  const Calibration unseen(g, {{"x"}});
  EXPECT_THROW((void)unseen.record(), UserError);
  Calibration odd(g, {{"x", 0}});
  odd.observe(batch(1, 5));
  EXPECT_THROW(odd.observe(batch(1, 7)), UserError);
  const double nan = std::nan("");
  EXPECT_THROW((void)params_for(numbers({nan, nan}), std::nullopt, {}), UserError);
  EXPECT_NEAR(
      params_for(numbers({nan, 1.27, HUGE_VAL}), std::nullopt, {.symmetric = true}).scales[0].value,
      0.01, 1e-8);
}

TEST(ModelCalibration, NumbersOfAnySizeAreCounted) {
  for (const RangeMethod method :
       {RangeMethod::Percentile, RangeMethod::Mse, RangeMethod::Entropy}) {
    const double scale = scale_of({1e-30, -1e-12, 1e20, 1e20, 1e20, 1e-3},
                                  {.method = method, .percentile = 100, .symmetric = true});
    EXPECT_GT(scale, 0.4 * 1e20 / 127) << static_cast<int>(method);
    EXPECT_LE(scale, 1.01 * 1e20 / 127) << static_cast<int>(method);
  }
}

}  // namespace
}  // namespace ricci::testing::model_calibration_test
