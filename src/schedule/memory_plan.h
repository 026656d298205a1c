// Where temporaries lie in the arena.
#pragma once

#include <cstdint>
#include <vector>

namespace ricci::schedule {

struct Lifetime {
  std::int64_t bytes = 0;
  std::size_t first = 0;  ///< step that fills it
  std::size_t last = 0;   ///< last step that reads or fills it
};

struct MemoryPlan {
  std::vector<std::int64_t> offsets;
  std::int64_t total = 0;
  std::int64_t most_alive = 0;  ///< the largest sum of lifetimes that overlap at one step
};

/// Places every lifetime so that those alive together do not overlap; offsets are multiples of
/// `alignment`.
[[nodiscard]] MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes,
                                     std::int64_t alignment = 64);

}  // namespace ricci::schedule
