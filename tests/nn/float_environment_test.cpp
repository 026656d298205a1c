// Weights that are drawn, layers, ranges of codes, rates and data that are made do not depend on
// the floating-point environment of the caller, who finds it as it was.
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/build/spectrum.h"
#include "ricci/model/calibration.h"
#include "ricci/model/schedule.h"
#include "ricci/nn.h"
#include "ricci/train/digits.h"

#include "support/compare.h"
#include "support/float_environments.h"

namespace ricci::testing::float_environment_test {
namespace {

using Tensors = std::vector<Tensor>;

void expect_the_same_everywhere(const char* what, const std::function<Tensors()>& make) {
  const Tensors expected = make();
  for (const Environment& e : environments()) {
    Tensors actual;
    EXPECT_TRUE(is_kept(e, [&] { actual = make(); })) << what << ", " << e.name;
    ASSERT_EQ(actual.size(), expected.size()) << what << ", " << e.name;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(same(actual[i], expected[i])) << what << " " << i << ", " << e.name;
    }
  }
}

Tensor numbers(const std::vector<double>& values) {
  return Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values);
}

TEST(NnFloatEnvironment, WeightsAreThoseOfTheDefaultOne) {
  expect_the_same_everywhere("initialisers", [] {
    const Key key(3);
    Tensors out;
    for (const Dims& shape : {Dims{5, 6}, Dims{7, 3, 3, 3}}) {
      for (const auto& init : {nn::glorot_uniform, nn::glorot_normal, nn::he_uniform, nn::he_normal,
                               nn::lecun_normal, nn::orthogonal}) {
        out.push_back(init(key, shape).tensor());
      }
      out.push_back(nn::truncated_normal(0.1)(key, shape).tensor());
    }
    return out;
  });
}

TEST(NnFloatEnvironment, SoAreLayersAndLosses) {
  expect_the_same_everywhere("layers", [] {
    nn::seed(5);
    Tensors out;
    const Array x = uniform(Key(2), {2, 6, 8}, -1, 1);
    const nn::MultiHeadAttention attention(8, 2, {.rope = 10000.0});
    const nn::MambaBlock mamba(8, {});
    const nn::Linear adapted = nn::adapt(nn::Linear(8, 3), "*", nn::LoRA{.rank = 3, .alpha = 7});
    out.push_back(attention(x).tensor());
    out.push_back(mamba(x).tensor());
    out.push_back(adapted(x).tensor());
    const Array logits = reshape(x, {12, 8});
    const Array classes = randint(Key(4), {12}, 0, 8);
    out.push_back(nn::cross_entropy(logits, classes, {.label_smoothing = 0.1}).tensor());
    out.push_back(nn::focal_loss(logits, cast(logits > 0, DType::F32), {}).tensor());
    return out;
  });
}

TEST(NnFloatEnvironment, SoAreRangesOfCodes) {
  const Tensor seen = normal(Key(9), {40, 3}, 0.1, 0.7).tensor();
  expect_the_same_everywhere("ranges", [&] {
    std::vector<double> all;
    for (const RangeMethod method :
         {RangeMethod::MinMax, RangeMethod::Percentile, RangeMethod::Mse, RangeMethod::Entropy}) {
      for (const CodeKind to : {CodeKind::I8, CodeKind::U4, CodeKind::E4m3}) {
        for (const std::optional<Axis>& axis : {std::optional<Axis>(), std::optional<Axis>(1)}) {
          const CodeParams codes =
              params_for(seen, axis, {.method = method, .percentile = 98.3, .to = to});
          for (const Real& s : codes.scales) all.push_back(s.value);
          for (const std::int64_t z : codes.zero_points) all.push_back(static_cast<double>(z));
        }
      }
    }
    return Tensors{numbers(all)};
  });
}

TEST(NnFloatEnvironment, SoAreRatesWindowsAndDigits) {
  expect_the_same_everywhere("rates", [] {
    std::vector<double> all;
    for (const Schedule& s :
         {cosine(0.1, {.warm_up = 7, .steps = 97}), exponential(0.3, {.rate = 0.7, .steps = 10}),
          one_cycle(0.1, {.steps = 33}), polynomial(0.1, 0.01, {.steps = 50, .power = 0.9}),
          inverse_sqrt(0.1, 7) * constant(0.3)}) {
      for (const std::int64_t step : {1, 5, 20}) all.push_back(s.at(step));
    }
    std::vector<double> (*const frequencies)(std::int64_t, double) = fftfreq;
    return Tensors{numbers(all), numbers(window_of(Window::Blackman, 31)),
                   numbers(frequencies(11, 0.3)), drawn_digits(2, 1).images};
  });
}

}  // namespace
}  // namespace ricci::testing::float_environment_test
