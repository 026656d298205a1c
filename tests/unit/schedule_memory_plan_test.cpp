// Where temporaries lie: never two at one place at one time, for few of them and for many.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "property/random.h"
#include "schedule/memory_plan.h"

namespace ricci::schedule::schedule_memory_plan_test {
namespace {

constexpr std::int64_t Alignment = 64;

// Most live for some steps, one in sixteen for long.
std::vector<Lifetime> random_lifetimes(std::size_t count, std::uint64_t seed) {
  ricci::testing::Rng rng(seed);
  std::vector<Lifetime> out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t length = rng.below(16) == 0 ? rng.below(400) : rng.below(8);
    out.push_back({static_cast<std::int64_t>(rng.below(4000)), i, i + length});
  }
  return out;
}

// Step by step, what is alive lies apart.
void expect_apart(const std::vector<Lifetime>& lifetimes, const MemoryPlan& plan) {
  std::multimap<std::size_t, std::size_t> begins;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].bytes > 0) begins.emplace(lifetimes[i].first, i);
  }
  std::vector<std::size_t> alive;
  for (const auto& [step, i] : begins) {
    std::erase_if(alive, [&, now = step](std::size_t j) { return lifetimes[j].last < now; });
    const std::int64_t end = plan.offsets[i] + lifetimes[i].bytes;
    for (const std::size_t j : alive) {
      const bool apart =
          plan.offsets[j] >= end || plan.offsets[j] + lifetimes[j].bytes <= plan.offsets[i];
      ASSERT_TRUE(apart) << i << " and " << j << " at step " << step;
    }
    alive.push_back(i);
    ASSERT_EQ(plan.offsets[i] % Alignment, 0);
    ASSERT_LE(end, plan.total);
  }
}

TEST(ScheduleMemoryPlan, LifetimesLieApart) {
  for (const std::size_t count : {0, 1, 2, 50, 1000}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const std::vector<Lifetime> lifetimes = random_lifetimes(count, seed);
      const MemoryPlan plan = plan_memory(lifetimes, Alignment);
      expect_apart(lifetimes, plan);
      EXPECT_GE(plan.total, plan.most_alive);
      EXPECT_LE(plan.total, 2 * plan.most_alive);
    }
  }
}

// Comparing each with all others would take the square of their number.
TEST(ScheduleMemoryPlan, ManyLifetimesLieApart) {
  const std::vector<Lifetime> lifetimes = random_lifetimes(300'000, 1);
  const MemoryPlan plan = plan_memory(lifetimes, Alignment);
  expect_apart(lifetimes, plan);
  EXPECT_GE(plan.total, plan.most_alive);
  EXPECT_LE(plan.total, 2 * plan.most_alive);
}

// As a gradient keeps them: filled one after the other, read in the opposite order.
TEST(ScheduleMemoryPlan, ManyThatAreKeptTakeNoMoreThanTheirSum) {
  constexpr std::size_t Count = 200'000;
  std::vector<Lifetime> lifetimes;
  for (std::size_t i = 0; i < Count; ++i) lifetimes.push_back({64, i, 2 * Count - i});
  const MemoryPlan plan = plan_memory(lifetimes, Alignment);
  EXPECT_EQ(plan.total, static_cast<std::int64_t>(64 * Count));
  EXPECT_EQ(plan.most_alive, plan.total);
  std::vector<std::int64_t> offsets = plan.offsets;
  std::ranges::sort(offsets);
  EXPECT_EQ(std::ranges::adjacent_find(offsets), offsets.end());
}

}  // namespace
}  // namespace ricci::schedule::schedule_memory_plan_test
