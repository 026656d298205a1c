#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "ricci/type/small_float.h"

namespace ricci::type_small_float_test {
namespace {

constexpr double Inf = std::numeric_limits<double>::infinity();

template <class Small>
class SmallFloat : public ::testing::Test {
 public:
  static Small from_bits(unsigned bits) {
    Small s;
    s.bits = static_cast<std::uint16_t>(bits);
    return s;
  }
};
using SmallFloats = ::testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(SmallFloat, SmallFloats);

// NaN payloads included.
TYPED_TEST(SmallFloat, EveryBitPatternSurvivesF64) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const TypeParam s = TestFixture::from_bits(bits);
    EXPECT_EQ(TypeParam(static_cast<double>(s)).bits, bits);
  }
}

// Between neighbours a < b: nearer wins, and the middle goes to the even one.
TYPED_TEST(SmallFloat, RoundsToNearestEven) {
  const unsigned infinity = TypeParam(Inf).bits;
  for (unsigned bits = 0; bits + 1 < infinity; ++bits) {
    const auto a = static_cast<double>(TestFixture::from_bits(bits));
    const auto b = static_cast<double>(TestFixture::from_bits(bits + 1));
    const double middle = (a + b) / 2;
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(TypeParam(middle).bits, even);
    EXPECT_EQ(TypeParam(std::nextafter(middle, a)).bits, bits);
    EXPECT_EQ(TypeParam(std::nextafter(middle, b)).bits, bits + 1);
    EXPECT_EQ(TypeParam(-middle).bits, even | 0x8000U);
  }
}

TYPED_TEST(SmallFloat, OverflowsToInfinity) {
  const TypeParam infinity(Inf);
  const unsigned largest_bits = infinity.bits - 1U;
  const auto largest = static_cast<double>(TestFixture::from_bits(largest_bits));
  const auto below = static_cast<double>(TestFixture::from_bits(largest_bits - 1));
  const double half_step = (largest - below) / 2;
  EXPECT_EQ(TypeParam(largest + half_step).bits, infinity.bits);
  EXPECT_EQ(TypeParam(std::nextafter(largest + half_step, 0)).bits, largest_bits);
  EXPECT_EQ(TypeParam(1e300).bits, infinity.bits);
  EXPECT_EQ(TypeParam(-1e300).bits, infinity.bits | 0x8000U);
}

TYPED_TEST(SmallFloat, KeepsSignsOfZeroAndSubnormals) {
  EXPECT_EQ(TypeParam(0.0).bits, 0);
  EXPECT_EQ(TypeParam(-0.0).bits, 0x8000);
  const auto least = static_cast<double>(TestFixture::from_bits(1));
  EXPECT_GT(least, 0);
  EXPECT_EQ(TypeParam(least / 2).bits, 0);  // a tie with 0, which is even
  EXPECT_EQ(TypeParam(std::nextafter(least / 2, 1.0)).bits, 1);
  EXPECT_EQ(TypeParam(least * 1.5).bits, 2);
  EXPECT_EQ(TypeParam(std::numeric_limits<double>::denorm_min()).bits, 0);
}

// A payload that does not fit must not turn into infinity.
TYPED_TEST(SmallFloat, NanStaysNan) {
  const double tiny_payload = std::bit_cast<double>(0x7FF0000000000001ULL);
  EXPECT_TRUE(std::isnan(static_cast<double>(TypeParam(tiny_payload))));
  const double negative = std::bit_cast<double>(0xFFF8000000000000ULL);
  EXPECT_EQ(TypeParam(negative).bits >> 15, 1);
}

TEST(SmallFloatValues, KnownBits) {
  EXPECT_EQ(Float16(1.0).bits, 0x3C00);
  EXPECT_EQ(Float16(65504.0).bits, 0x7BFF);
  EXPECT_EQ(Float16(65520.0).bits, 0x7C00);
  EXPECT_EQ(Float16(0x1p-24).bits, 0x0001);
  EXPECT_EQ(Float16(0.1).bits, 0x2E66);
  EXPECT_EQ(BFloat16(1.0).bits, 0x3F80);
  EXPECT_EQ(BFloat16(0.1).bits, 0x3DCD);
  EXPECT_EQ(BFloat16(3.3895313892515355e38).bits, 0x7F7F);
}

// One rounding from f64: going through f32 first would round 1 + 2^-11 + 2^-40 down to a tie.
TEST(SmallFloatValues, RoundsOnceFromF64) {
  EXPECT_EQ(Float16(1 + 0x1p-11 + 0x1p-40).bits, 0x3C01);
  EXPECT_EQ(BFloat16(1 + 0x1p-8 + 0x1p-40).bits, 0x3F81);
}

}  // namespace
}  // namespace ricci::type_small_float_test
