// What the other tests mean by equal.
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "support/compare.h"

namespace ricci::testing::support_compare_test {
namespace {

TEST(Compare, SameMeansTheSameBits) {
  EXPECT_TRUE(same(Tensor::of<float>({2}, {1, -0.0F}), Tensor::of<float>({2}, {1, -0.0F})));
  EXPECT_FALSE(same(Tensor::of<float>({1}, {0.0F}), Tensor::of<float>({1}, {-0.0F})));
  EXPECT_TRUE(close(Tensor::of<float>({1}, {0.0F}), Tensor::of<float>({1}, {-0.0F})));
  using Complex = std::complex<double>;
  EXPECT_FALSE(same(Tensor::of<Complex>({1}, {{1, 0.0}}), Tensor::of<Complex>({1}, {{1, -0.0}})));
}

TEST(Compare, AnyNanIsAnyNan) {
  constexpr double NaN = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(same(Tensor::of<double>({1}, {NaN}), Tensor::of<double>({1}, {-NaN})));
  EXPECT_FALSE(same(Tensor::of<double>({1}, {NaN}), Tensor::of<double>({1}, {0})));
}

// Neighbours a double cannot tell apart.
TEST(Compare, IntegersAreComparedAsIntegers) {
  constexpr std::int64_t Large = (std::int64_t{1} << 53) + 1;
  EXPECT_FALSE(
      same(Tensor::of<std::int64_t>({1}, {Large}), Tensor::of<std::int64_t>({1}, {Large - 1})));
}

}  // namespace
}  // namespace ricci::testing::support_compare_test
