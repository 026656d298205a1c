#include "schedule/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "ricci/support/checked.h"

#include "support/align.h"

namespace ricci::schedule {
namespace {

std::int64_t most_alive(const std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
  std::vector<std::pair<std::size_t, std::int64_t>> events;
  for (const Lifetime& l : lifetimes) {
    events.emplace_back(l.first, aligned(l.bytes, alignment));
    events.emplace_back(l.last + 1, -aligned(l.bytes, alignment));
  }
  std::ranges::sort(events);
  std::int64_t alive = 0;
  std::int64_t most = 0;
  for (const auto& [step, change] : events) {
    alive = checked_add(alive, change);
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

// Largest first, each at the lowest place that is free for its whole life.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
  MemoryPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  plan.most_alive = most_alive(lifetimes, alignment);
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const std::int64_t x = lifetimes[a].bytes;
    const std::int64_t y = lifetimes[b].bytes;
    return x != y ? x > y : a < b;
  });
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    const Lifetime& l = lifetimes[i];
    if (l.bytes == 0) continue;
    std::int64_t offset = 0;
    for (const std::size_t j : placed) {
      const Lifetime& other = lifetimes[j];
      if (other.last < l.first || l.last < other.first) continue;
      if (plan.offsets[j] >= checked_add(offset, aligned(l.bytes, alignment))) break;
      offset = std::max(offset, checked_add(plan.offsets[j], aligned(other.bytes, alignment)));
    }
    plan.offsets[i] = offset;
    plan.total = std::max(plan.total, checked_add(offset, aligned(l.bytes, alignment)));
    placed.insert(std::ranges::upper_bound(placed, offset, {},
                                           [&](std::size_t j) { return plan.offsets[j]; }),
                  i);
  }
  return plan;
}

}  // namespace ricci::schedule
