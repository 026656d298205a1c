// Encoders: how near they come, what they keep, and what odd values do to them.
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "ricci/quant/format.h"

#include "support/published_encoders.h"

namespace ricci::quant::quant_encode_test {
namespace {

using Values = std::vector<float>;

// Kinds of weights: as trained, evenly spread, heavy tails, all positive, a few large ones, small.
constexpr const char* Kinds[] = {"normal", "uniform", "laplace", "positive", "outliers", "small"};

Values random_values(std::size_t kind, std::size_t count, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform(-1, 1);
  Values x(count);
  for (float& v : x) {
    const float u = uniform(rng);
    switch (kind) {
      case 0: v = normal(rng); break;
      case 1: v = u; break;
      case 2: v = -std::copysign(std::log(1 - 0.9999F * std::fabs(u)), u); break;
      case 3: v = 0.5F + 0.5F * u; break;
      case 4: v = normal(rng) * (rng() % 64 == 0 ? 10.0F : 1.0F); break;
      default: v = 0.02F * normal(rng); break;
    }
  }
  return x;
}

std::vector<std::byte> encoded(const FormatInfo& f, const Values& x,
                               std::span<const float> w = {}) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(packed_bytes(f.format, static_cast<std::int64_t>(x.size()))));
  encode(f.format, x, bytes, w);
  return bytes;
}
Values decoded_values(const FormatInfo& f, const std::vector<std::byte>& bytes, std::size_t count) {
  Values y(count);
  decode(f.format, bytes, y);
  return y;
}
Values round_trip(const FormatInfo& f, const Values& x, std::span<const float> w = {}) {
  return decoded_values(f, encoded(f, x, w), x.size());
}
Values published(const FormatInfo& f, const Values& x) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(packed_bytes(f.format, static_cast<std::int64_t>(x.size()))));
  testing::published_encode(f.format, x, bytes);
  return decoded_values(f, bytes, x.size());
}

double rms(const Values& x, const Values& y, std::span<const float> w) {
  double sum = 0;
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double off = static_cast<double>(x[i]) - y[i];
    sum += w[i] * off * off;
    total += w[i];
  }
  return std::sqrt(sum / total);
}

class QuantEncode : public ::testing::TestWithParam<Format> {
 protected:
  const FormatInfo& f = info(GetParam());
};

// [gguf-encode] The ratios are recorded as properties: `--gtest_output=json` has the table.
TEST_P(QuantEncode, IsNoWorseThanThePublishedProcedure) {
  constexpr std::size_t Count = 256 * 24;
  for (std::size_t kind = 0; kind < std::size(Kinds); ++kind) {
    const Values x = random_values(kind, Count, 17);
    const Values alike(Count, 1.0F);
    const double ours = rms(x, round_trip(f, x), alike);
    const double theirs = rms(x, published(f, x), alike);
    EXPECT_LE(ours, theirs) << Kinds[kind];
    RecordProperty(Kinds[kind], std::to_string(ours) + " against " + std::to_string(theirs));
    // And by the weights that procedure goes by, when we are told them.
    const Values w = testing::published_weights(f.format, x);
    EXPECT_LE(rms(x, round_trip(f, x, w), w), rms(x, published(f, x), w)) << Kinds[kind];
  }
}

// Formats with one scale a block have every published block among their candidates.
TEST_P(QuantEncode, OneScaleIsNoWorseInAnyBlock) {
  if (f.block_length == 256 && f.format != Format::Q8K) GTEST_SKIP() << "several scales a block";
  const auto length = static_cast<std::size_t>(f.block_length);
  const Values alike(length, 1.0F);
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Values x = random_values(seed % std::size(Kinds), length, seed);
    const double theirs = rms(x, published(f, x), alike);
    ASSERT_LE(rms(x, round_trip(f, x), alike), theirs * (1 + 1e-9)) << "seed " << seed;
  }
}

// What was encoded once is on a grid, which encoding it again finds; with offsets, or scales of
// scales, the search may end on one beside it, but values do not wander.
TEST_P(QuantEncode, EncodedValuesStay) {
  for (std::size_t kind = 0; kind < std::size(Kinds); ++kind) {
    const Values x = random_values(kind, 256 * 8, 5);
    const Values alike(x.size(), 1.0F);
    const Values once = round_trip(f, x);
    const Values twice = round_trip(f, once);
    const bool one_scale =
        f.block_length != 256 && f.format != Format::Q4_1 && f.format != Format::Q5_1;
    const double part = one_scale ? 0.02 : 0.25;
    EXPECT_LE(rms(once, twice, alike), part * rms(x, once, alike)) << Kinds[kind];
  }
}

TEST_P(QuantEncode, TheSameValuesGiveTheSameBytes) {
  const Values x = random_values(0, 256 * 2, 3);
  EXPECT_EQ(encoded(f, x), encoded(f, x));
}

TEST_P(QuantEncode, ZerosAndConstantsSurvive) {
  const Values zeros(256, 0.0F);
  EXPECT_EQ(round_trip(f, zeros), zeros);
  for (const float c : {1.0F, -1.0F, 0.375F, 100.0F}) {
    const Values x(256, c);
    // FP4 has 1.5, 3 and 6 between powers of two, FP8 three or seven more.
    for (const float y : round_trip(f, x)) EXPECT_NEAR(y, c, 0.05F * std::fabs(c)) << c;
  }
}

TEST_P(QuantEncode, ExtremeValuesStayFinite) {
  constexpr float Largest = std::numeric_limits<float>::max();
  constexpr float Least = std::numeric_limits<float>::denorm_min();
  for (const float extreme : {Largest, -Largest, 1e30F, 70000.0F * 127, 1e-30F, Least, -Least}) {
    for (const std::size_t every : {std::size_t{1}, std::size_t{7}, std::size_t{256}}) {
      Values x(256, 0.0F);
      for (std::size_t i = 0; i < x.size(); i += every) x[i] = extreme;
      for (const float y : round_trip(f, x)) ASSERT_TRUE(std::isfinite(y)) << extreme;
    }
  }
}

TEST_P(QuantEncode, ImportanceIsHeeded) {
  if (f.block_length == 1) GTEST_SKIP() << "every value for itself";
  const Values x = random_values(0, 256 * 8, 11);
  Values w(x.size(), 0.01F);
  for (std::size_t i = 0; i < w.size(); i += 4) w[i] = 1;
  EXPECT_LT(rms(x, round_trip(f, x, w), w), rms(x, round_trip(f, x), w));
  // None at all is as good as none told.
  EXPECT_EQ(encoded(f, x, Values(x.size(), 0.0F)), encoded(f, x));
  EXPECT_EQ(encoded(f, x, Values(x.size(), 1.0F)), encoded(f, x));
}

std::vector<Format> all() {
  std::vector<Format> out;
  for (const FormatInfo& i : all_formats()) out.push_back(i.format);
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, QuantEncode, ::testing::ValuesIn(all()),
                         [](const auto& i) { return std::string(name(i.param)); });

}  // namespace
}  // namespace ricci::quant::quant_encode_test
