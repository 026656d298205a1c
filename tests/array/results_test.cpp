// Ops with results that nobody asked for: looked at, then used by other programs, on all devices.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "ricci/array.h"

#include "array/node.h"
#include "array/program.h"

namespace ricci::results_test {
namespace {

using Numbers = std::vector<double>;

void on_every_device(const std::function<void()>& f) {
  for (const DeviceListing& d : Device::all()) {
    if (!d.why_not.empty()) continue;
    SCOPED_TRACE(d.name);
    use_device(Device::named(d.name));
    f();
    use_device(Device::standard());
  }
}

// What was looked at is an input of the next program, which must not read what is not there.
void expect_usable(const Array& x) {
  const Numbers seen = x.to_vector();
  ASSERT_TRUE(x.node()->is_ready());
  const Array next = x * 2.0 + 1.0;
  EXPECT_EQ(detail::count_waiting(next).bytes, x.size() * size_of(x.dtype()))
      << "it reads more than what was asked for";
  const Numbers twice = next.to_vector();
  ASSERT_EQ(seen.size(), twice.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_NEAR(twice[i], seen[i] * 2 + 1, 1e-5 * (1 + std::abs(seen[i])));
  }
}

Array some(const Dims& shape, std::uint64_t seed = 1) { return normal(Key(seed), shape).eval(); }

TEST(ArrayUnwantedResults, OfLoops) {
  on_every_device([] {
    const auto below = [](const Array& x) { return sum(x) < 100.0; };
    const auto twice = [](const Array& x) { return x * 2.0; };
    expect_usable(while_loop(array({1.0, 2.0, 3.0}), below, twice));
    expect_usable(while_loop(array({1.0, 2.0, 3.0}), below, twice, {.max_iterations = 20}));
    const auto [a, b] = while_loop(
        std::pair{array({1.0, 2.0}), array({1.0, 2.0, 3.0})},
        [](const std::pair<Array, Array>& s) { return s.first[0] < 8.0; },
        [](const std::pair<Array, Array>& s) { return std::pair{s.first * 2.0, s.second + 1.0}; });
    (void)a.tensor();
    EXPECT_EQ((b * 1.0).to_vector(), (Numbers{4, 5, 6}));
    EXPECT_EQ((sum(a) + b).to_vector(), (Numbers{28, 29, 30}));
    expect_usable(scan(array({1.0, 2.0}), 3, [](const Array& c) { return c * 2.0; }).last);
  });
}

TEST(ArrayUnwantedResults, OfAttention) {
  on_every_device([] {
    const Array q = some({1, 2, 8, 4});
    expect_usable(scaled_dot_product_attention(q, some({1, 2, 8, 4}, 2), some({1, 2, 8, 4}, 3)));
  });
}

TEST(ArrayUnwantedResults, OfRecurrences) {
  on_every_device([] {
    expect_usable(selective_scan(some({1, 5, 3}), some({1, 5, 3}, 2), some({3, 4}, 3),
                                 some({1, 5, 4}, 4), some({1, 5, 4}, 5), {.state_size = 4}));
    expect_usable(gated_delta_net(some({1, 5, 2, 3}), some({1, 5, 2, 3}, 2), some({1, 5, 2, 4}, 3),
                                  some({1, 5, 2}, 4), some({1, 5, 2}, 5), {.state_size = 3}));
  });
}

TEST(ArrayUnwantedResults, OfRounding) {
  on_every_device([] {
    expect_usable(fake_quantize(some({4, 6}), {.bits = 4, .axis = 0}));
    const Array state = full({4}, 0.5);
    expect_usable(
        fake_quantize(some({4, 6}), state, {.bits = 4, .axis = 0, .scale_mode = ScaleMode::Ema}));
  });
}

TEST(ArrayEager, AnExponentIsWrittenIntoItsOwnProgramOnly) {
  // The same number as an exponent and as a factor: programs with the factor serve all factors.
  const Array x = array({1.0, 2.0, 3.0}).eval();
  const auto with = [&](double value) {
    const Array number = cast(Array(value), DType::F32);
    const Array power = pow(x, number);
    (void)power.tensor();
    return (x * number).to_vector();
  };
  EXPECT_EQ(with(2.5), (Numbers{2.5, 5, 7.5}));
  const std::size_t before = detail::programs_compiled();
  const Array number = cast(Array(3.5), DType::F32);
  const Array power = pow(x, number);
  EXPECT_EQ((x * number).to_vector(), (Numbers{3.5, 7, 10.5}));
  EXPECT_EQ(detail::programs_compiled(), before);
  EXPECT_NEAR(power[1].item(), std::pow(2.0, 3.5), 1e-4);
}

TEST(ArrayEager, AnExpressionIsCompiledOnce) {
  const auto expression = [](double factor, const Array& x) {
    return (tanh(x * factor) + sum(x) - x / 3.0).to_vector();
  };
  (void)expression(1.5, array({1.0, 2.0, 3.0, 4.0, 5.0}));
  const std::size_t before = detail::programs_compiled();
  (void)expression(2.5, array({5.0, 4.0, 3.0, 2.0, 1.0}));
  EXPECT_EQ(detail::programs_compiled(), before);
  (void)expression(2.5, array({5.0, 4.0}));
  EXPECT_EQ(detail::programs_compiled(), before + 1);
}

}  // namespace
}  // namespace ricci::results_test
