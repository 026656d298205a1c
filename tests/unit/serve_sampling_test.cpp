// Drawing tokens: who can be drawn, how often, and what is refused.
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ricci/serve/sampling.h"
#include "ricci/support/error.h"

namespace ricci::serve_sampling_test {
namespace {

constexpr float Infinity = std::numeric_limits<float>::infinity();

std::map<std::int32_t, int> counts(const Sampling& how, const std::vector<float>& logits,
                                   int draws = 4000) {
  Sampler draw(how);
  std::map<std::int32_t, int> out;
  for (int i = 0; i < draws; ++i) ++out[draw(logits, {})];
  return out;
}

const std::vector<float> Logits = {std::log(0.1F), std::log(0.5F), std::log(0.15F), std::log(0.25F),
                                   -Infinity};

TEST(ServeSampling, DrawsAsOftenAsProbable) {
  const auto all = counts({}, Logits);
  EXPECT_EQ(all.size(), 4U);
  EXPECT_NEAR(all.at(1), 2000, 130);
  EXPECT_NEAR(all.at(0), 400, 80);
  const auto hot = counts({.temperature = 2}, Logits);
  EXPECT_LT(hot.at(1), all.at(1));
  EXPECT_EQ(counts({.temperature = 1e-9}, Logits).size(), 1U);
  EXPECT_EQ(counts({.temperature = 0}, Logits).at(1), 4000);
}

TEST(ServeSampling, TakesTheLikeliest) {
  const auto two = counts({.top_k = 2}, Logits);
  EXPECT_EQ(two.size(), 2U);
  EXPECT_NEAR(two.at(1), 4000 * 2 / 3, 130);
  EXPECT_EQ(counts({.top_k = 99}, Logits).size(), 4U);
  // 0.5 + 0.25 is enough for 0.7, 0.15 is needed for 0.8.
  EXPECT_EQ(counts({.top_p = 0.7}, Logits).size(), 2U);
  EXPECT_EQ(counts({.top_p = 0.8}, Logits).size(), 3U);
  EXPECT_EQ(counts({.top_p = 1e-9}, Logits).size(), 1U);
  // A share of the two thirds and the third that are left: the first is enough for 0.6.
  EXPECT_EQ(counts({.top_k = 2, .top_p = 0.6}, Logits).size(), 1U);
  EXPECT_EQ(counts({.top_k = 1, .top_p = 0.99}, Logits).size(), 1U);
}

// Neither a temperature that is almost 0 nor a penalty makes a draw of what is not finite.
TEST(ServeSampling, ExtremesDrawTheLikeliest) {
  const std::vector<float> logits = {1, 3, -2, -Infinity, 2};
  for (const double temperature : {1e-30, 1e-300, 5e-324}) {
    for (const std::int64_t top_k : {0, 2}) {
      Sampler draw({.temperature = temperature, .top_k = top_k});
      for (int i = 0; i < 20; ++i) EXPECT_EQ(draw(logits, {}), 1) << temperature;
    }
  }
  const std::vector<std::int32_t> seen = {1, 2, 3};
  for (const double temperature : {0.0, 1.0, 1e-300}) {
    Sampler small({.temperature = temperature, .repetition_penalty = 5e-324});
    EXPECT_EQ(small(logits, seen), 1) << "what is above 0 becomes the largest number there is";
    Sampler large({.temperature = temperature == 0 ? 0 : 1e-300, .repetition_penalty = 1.7e308});
    EXPECT_EQ(large(logits, seen), 4);
    const std::vector<float> low = {-1, -3};
    EXPECT_LT(large(low, std::vector<std::int32_t>{0, 1}), 2);
  }
}

TEST(ServeSampling, ManyTokensAreSortedAsFarAsNeeded) {
  std::vector<float> flat(50000, 0.0F);
  flat[77] = 1;
  const auto drawn = counts({.top_p = 0.5}, flat, 300);
  for (const auto& [token, n] : drawn) EXPECT_LT(token, 25002);
  EXPECT_GT(drawn.size(), 200U);
  EXPECT_EQ(counts({.top_k = 3}, flat, 300).size(), 3U);
}

TEST(ServeSampling, OfEqualOnesTheFirst) {
  Sampler greedy({.temperature = 0});
  EXPECT_EQ(greedy(std::vector<float>{1, 3, 3, 2}, {}), 1);
  EXPECT_EQ(greedy(std::vector<float>{-Infinity, -5}, {}), 1);
}

TEST(ServeSampling, RepetitionCosts) {
  Sampler greedy({.temperature = 0, .repetition_penalty = 2});
  const std::vector<std::int32_t> seen = {0, 0, 2, 99, -1};
  EXPECT_EQ(greedy(std::vector<float>{4, 3, -1}, seen), 1);    // 2, 3, -2
  EXPECT_EQ(greedy(std::vector<float>{-4, -3, -1}, seen), 2);  // -8, -3, -2
}

TEST(ServeSampling, SeedsMakeStreams) {
  const auto drawn = [](std::uint64_t seed) {
    Sampler draw({.seed = seed});
    std::vector<std::int32_t> out;
    for (int i = 0; i < 30; ++i) out.push_back(draw(Logits, {}));
    return out;
  };
  EXPECT_EQ(drawn(3), drawn(3));
  EXPECT_NE(drawn(3), drawn(4));
}

TEST(ServeSampling, RefusesWhatIsOutOfRange) {
  for (const Sampling& s :
       {Sampling{.temperature = -1}, Sampling{.temperature = std::nan("")}, Sampling{.top_k = -1},
        Sampling{.top_p = 0}, Sampling{.top_p = 1.5}, Sampling{.repetition_penalty = 0}}) {
    EXPECT_THROW((void)Sampler(s), UserError);
  }
  Sampler draw({});
  EXPECT_THROW((void)draw(std::vector<float>{1, std::nanf("")}, {}), UserError);
  EXPECT_THROW((void)draw(std::vector<float>{-Infinity, -Infinity}, {}), UserError);
  EXPECT_THROW((void)draw(std::vector<float>{}, {}), UserError);
  EXPECT_THROW((void)draw(std::vector<float>{0, Infinity}, {}), UserError);
}

}  // namespace
}  // namespace ricci::serve_sampling_test
