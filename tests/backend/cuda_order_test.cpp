// What a graph's nodes wait for: the fewest edges that keep every two in order of which one writes
// what the other reads or writes, against their definition.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "backend/cuda/run/order.h"
#include "property/random.h"

namespace ricci::testing::cuda_order_test {
namespace {

using cuda::Order;
using cuda::Use;
using Waits = std::vector<std::vector<std::size_t>>;

Waits ordered(const std::vector<std::vector<Use>>& program) {
  Order order;
  Waits all;
  for (const std::vector<Use>& uses : program) all.push_back(order.add(uses));
  return all;
}

bool meet(const Use& a, const Use& b) {
  const auto end = [](const Use& u) { return u.at + static_cast<std::uint64_t>(u.bytes); };
  return a.bytes > 0 && b.bytes > 0 && a.at < end(b) && b.at < end(a) && (a.written || b.written);
}

bool must_wait(const std::vector<Use>& later, const std::vector<Use>& earlier) {
  return std::ranges::any_of(later, [&](const Use& a) {
    return std::ranges::any_of(earlier, [&](const Use& b) { return meet(a, b); });
  });
}

// Everyone waits for all they must, and then not for those that others of them wait for, however
// far away.
Waits by_definition(const std::vector<std::vector<Use>>& program) {
  const std::size_t count = program.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count, false));
  for (std::size_t later = 0; later < count; ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      if (!must_wait(program[later], program[earlier])) continue;
      before[later][earlier] = true;
      for (std::size_t n = 0; n < earlier; ++n) {
        if (before[earlier][n]) before[later][n] = true;
      }
    }
  }
  Waits all(count);
  for (std::size_t later = 0; later < count; ++later) {
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      bool through_another = false;
      for (std::size_t n = earlier + 1; n < later; ++n) {
        through_another = through_another || (before[later][n] && before[n][earlier]);
      }
      if (before[later][earlier] && !through_another) all[later].push_back(earlier);
    }
  }
  return all;
}

constexpr Use read(std::uint64_t at, std::int64_t bytes) { return {at, bytes, false}; }
constexpr Use written(std::uint64_t at, std::int64_t bytes) { return {at, bytes, true}; }

TEST(BackendCudaOrder, WhatSharesNothingWaitsForNothing) {
  EXPECT_EQ(ordered({{read(0, 8), written(8, 8)}, {read(0, 8), written(16, 8)}, {}}),
            (Waits{{}, {}, {}}));
}

TEST(BackendCudaOrder, ReadersWaitForTheWriterAndTheNextWriterForThem) {
  EXPECT_EQ(ordered({{written(0, 8)},
                     {read(0, 4), written(8, 1)},
                     {read(4, 4), written(9, 1)},
                     {written(0, 8)},
                     {read(7, 1)}}),
            (Waits{{}, {0}, {0}, {1, 2}, {3}}));
}

TEST(BackendCudaOrder, NobodyWaitsTwiceForTheSame) {
  EXPECT_EQ(ordered({{written(0, 8)},
                     {read(0, 8), written(8, 8)},
                     {read(0, 8), read(8, 8), written(16, 8)},
                     {read(0, 24)}}),
            (Waits{{}, {0}, {1}, {2}}));
}

TEST(BackendCudaOrder, EmptyArraysOrderNothing) {
  EXPECT_EQ(ordered({{written(8, 0)}, {read(8, 0), written(8, 0)}, {written(0, 16)}}),
            (Waits{{}, {}, {}}));
}

TEST(BackendCudaOrder, AddressesMayBeAnywhere) {
  constexpr std::uint64_t Last = ~std::uint64_t{0} - 16;
  EXPECT_EQ(ordered({{written(Last, 8)}, {written(0, 8)}, {read(0, 8), read(Last + 7, 1)}}),
            (Waits{{}, {}, {0, 1}}));
}

// Many that share nothing: more than a GPU does at a time follow each other.
TEST(BackendCudaOrder, NoMoreThanSoManyAreSideBySide) {
  constexpr std::size_t Count = 3 * Order::MostChains;
  std::vector<std::vector<Use>> program;
  for (std::size_t n = 0; n < Count; ++n) program.push_back({written(n, 1)});
  program.push_back({read(0, 1), read(Count - 1, 1)});
  const Waits waits = ordered(program);
  for (std::size_t n = 0; n < Count; ++n) {
    const bool begins = n < Order::MostChains;
    EXPECT_EQ(waits[n], begins ? std::vector<std::size_t>{}
                               : std::vector<std::size_t>{n - Order::MostChains});
  }
  EXPECT_EQ(waits[Count], (std::vector<std::size_t>{0, Count - 1}));
}

TEST(BackendCudaOrder, RandomProgramsAreOrderedAsDefined) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Rng random(seed);
    const std::size_t room = 4 + random.below(200);
    std::vector<std::vector<Use>> program(1 + random.below(40));
    for (std::vector<Use>& uses : program) {
      for (std::size_t n = random.below(6); n > 0; --n) {
        uses.push_back(
            {random.below(room), static_cast<std::int64_t>(random.below(13)), random.chance(33)});
      }
    }
    ASSERT_EQ(ordered(program), by_definition(program));
  }
}

}  // namespace
}  // namespace ricci::testing::cuda_order_test
