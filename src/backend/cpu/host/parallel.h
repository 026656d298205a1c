// Cutting work into tiles for the pool. Tiles depend on counts alone, never on threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ricci/compiler/device/thread_pool.h"

namespace ricci::cpu {

/// Calls `f(begin, end)` on pieces of [0, count), `grain` items each.
template <class F>
void parallel_for(ThreadPool& pool, std::int64_t count, std::int64_t grain, F&& f) {
  if (count <= 0) return;
  const std::int64_t tiles = (count + grain - 1) / grain;
  pool.run(tiles, [&](std::int64_t tile) { f(tile * grain, std::min(count, (tile + 1) * grain)); });
}

/// How many items make a tile worth a thread, when each takes about `cost` simple steps.
[[nodiscard]] inline std::int64_t grain_for(std::int64_t cost) {
  constexpr std::int64_t StepsPerTile = 1 << 15;
  return std::max<std::int64_t>(1, StepsPerTile / std::max<std::int64_t>(1, cost));
}

/// Items dealt out to few enough tiles that each can have room of its own.
struct Slots {
  std::int64_t items;
  std::int64_t per_tile;
  std::int64_t tiles;

  explicit Slots(std::int64_t count, std::int64_t most_tiles = 64)
      : items(count),
        per_tile(std::max<std::int64_t>(1, (count + most_tiles - 1) / most_tiles)),
        tiles((count + per_tile - 1) / per_tile) {}

  /// Calls `f(item, tile)` for every item; items of one tile follow each other.
  template <class F>
  void run(ThreadPool& pool, const F& f) const {
    parallel_for(pool, items, per_tile, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) f(i, begin / per_tile);
    });
  }
};

}  // namespace ricci::cpu
