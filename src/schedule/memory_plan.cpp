#include "schedule/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

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

// Largest first, each at the lowest place that is free for its whole life: every one is compared
// with all that were placed before it.
void place_by_size(const std::vector<Lifetime>& lifetimes, std::int64_t alignment,
                   MemoryPlan& plan) {
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
}

// The memory between what is in use.
class Gaps {
 public:
  /// The offset of so many bytes, in the smallest gap that has them or else at the end.
  std::int64_t take(std::int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      const auto [size, offset] = *fit;
      remove(offset, size);
      if (size > bytes) insert(checked_add(offset, bytes), size - bytes);
      return offset;
    }
    std::int64_t offset = end_;
    if (!by_offset_.empty()) {  // a gap at the end is made longer
      const auto [last, size] = *by_offset_.rbegin();
      if (last + size == end_) {
        remove(last, size);
        offset = last;
      }
    }
    end_ = checked_add(offset, bytes);
    return offset;
  }

  void give_back(std::int64_t offset, std::int64_t bytes) {
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto [before, size] = *std::prev(after);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
        bytes += size;
      }
    }
    if (const auto next = by_offset_.find(offset + bytes); next != by_offset_.end()) {
      const std::int64_t size = next->second;
      remove(next->first, size);
      bytes += size;
    }
    insert(offset, bytes);
  }

  [[nodiscard]] std::int64_t end() const { return end_; }

 private:
  void insert(std::int64_t offset, std::int64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(std::int64_t offset, std::int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::int64_t end_ = 0;
};

// In the order of the steps, as an allocator would.
void place_by_step(const std::vector<Lifetime>& lifetimes, std::int64_t alignment,
                   MemoryPlan& plan) {
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].bytes > 0) begins.push_back(i);
  }
  std::vector<std::size_t> ends = begins;
  std::ranges::sort(begins, {}, [&](std::size_t i) {
    return std::tuple(lifetimes[i].first, -lifetimes[i].bytes, i);
  });
  std::ranges::sort(ends, {}, [&](std::size_t i) { return std::pair(lifetimes[i].last, i); });
  Gaps gaps;
  auto over = ends.begin();
  for (const std::size_t i : begins) {
    for (; lifetimes[*over].last < lifetimes[i].first; ++over) {
      gaps.give_back(plan.offsets[*over], aligned(lifetimes[*over].bytes, alignment));
    }
    plan.offsets[i] = gaps.take(aligned(lifetimes[i].bytes, alignment));
  }
  plan.total = gaps.end();
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
  // By size takes less memory, by step less time: beyond this number it would be minutes.
  constexpr std::ptrdiff_t Many = 16384;
  MemoryPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  plan.most_alive = most_alive(lifetimes, alignment);
  const auto placed =
      std::ranges::count_if(lifetimes, [](const Lifetime& l) { return l.bytes > 0; });
  const auto place = placed <= Many ? place_by_size : place_by_step;
  place(lifetimes, alignment, plan);
  return plan;
}

}  // namespace ricci::schedule
