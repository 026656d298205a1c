#include <gtest/gtest.h>

#include "support/philox.h"

namespace ricci::support_philox_test {
namespace {

constexpr std::uint32_t Ones = 0xFFFFFFFF;

// [LF-02] The published known answers.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({Ones, Ones, Ones, Ones}, {Ones, Ones}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, StreamReadsWordsInOrder) {
  const PhiloxStream s(0, 0);
  const PhiloxBlock second = philox4x32({1, 0, 0, 0}, {0, 0});
  EXPECT_EQ(s.word(0), 0x6627e8d5U);
  EXPECT_EQ(s.word(3), 0x9b00dbd8U);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(s.word(4 + i), second[i]);
}

TEST(Philox, PositionsBeyond32BitsAreDistinct) {
  const PhiloxStream s(0, 1);
  const std::uint64_t far = std::uint64_t{1} << 34;  // counter word 1 becomes 1
  EXPECT_NE(s.word(0), s.word(far));
}

TEST(Philox, SeedAndKeyCombine) {
  // seed + key·golden, modulo 2^64
  constexpr std::uint64_t Golden = 0x9E3779B97F4A7C15ULL;
  EXPECT_EQ(PhiloxStream(Golden, 0).word(5), PhiloxStream(0, 1).word(5));
  EXPECT_NE(PhiloxStream(0, 1).word(0), PhiloxStream(0, 2).word(0));
  EXPECT_NE(PhiloxStream(0, 1).word(0), PhiloxStream(1, 1).word(0));
}

TEST(Philox, UniformsUseTheHighBits) {
  const PhiloxStream s(3, 9);
  EXPECT_EQ(s.uniform24(6), (s.word(6) >> 8) / 16777216.0);
  const std::uint64_t wide = (std::uint64_t{s.word(6)} << 32) | s.word(7);
  EXPECT_EQ(s.uniform53(6), static_cast<double>(wide >> 11) / 9007199254740992.0);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_GE(s.uniform24(i), 0.0);
    EXPECT_LT(s.uniform24(i), 1.0);
    EXPECT_LT(s.uniform53(i), 1.0);
  }
}

}  // namespace
}  // namespace ricci::support_philox_test
