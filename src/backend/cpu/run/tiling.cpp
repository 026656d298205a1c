#include "backend/cpu/run/tiling.h"

#include <algorithm>

#include "loop/cut.h"

namespace ricci::cpu {
namespace {

// Ranges of flat kernels are whole cache lines of any dtype.
constexpr std::int64_t ColumnGrain = 64;
// Rows that may run side by side are not parted where there are many.
constexpr std::int64_t RowGrain = 16;

}  // namespace

std::int64_t tile_count(const loop::Kernel& k) {
  constexpr std::int64_t TileWork = 1 << 17;
  constexpr std::int64_t MostTiles = 64;
  const std::int64_t wanted = std::clamp<std::int64_t>(k.work / TileWork, 1, MostTiles);
  const auto at_most = [&](std::int64_t parts) {
    return std::min(wanted, std::max<std::int64_t>(parts, 1));
  };
  if (k.flat) return at_most(k.row_elements() / ColumnGrain);
  if (k.accumulators.empty()) return at_most(k.rows());
  // A tile of several kept rows accumulates each for itself, so chunks need tiles of one kept row.
  if (k.chunks > 1) return std::max<std::int64_t>(k.kept_rows(), 1) * k.chunks;
  return at_most(k.kept_rows());
}

TileRange tile_range(const loop::Kernel& k, std::int64_t tiles, std::int64_t tile) {
  if (k.flat) {
    const std::int64_t n = k.extents[0];
    const auto [a, b] = loop::cut((n + ColumnGrain - 1) / ColumnGrain, tiles, tile);
    return {.first = std::min(a * ColumnGrain, n), .last = std::min(b * ColumnGrain, n)};
  }
  if (k.accumulators.empty()) {
    const std::int64_t grain = k.rows() >= tiles * RowGrain * 4 ? RowGrain : 1;
    const auto [a, b] = loop::cut((k.rows() + grain - 1) / grain, tiles, tile);
    return {.first = std::min(a * grain, k.rows()), .last = std::min(b * grain, k.rows())};
  }
  const auto [first, last] = loop::cut(k.kept_rows(), tiles / k.chunks, tile / k.chunks);
  const auto [inner_first, inner_last] = loop::chunk_rows(k, tile % k.chunks);
  return {first, last, inner_first, inner_last, first * k.chunks + tile % k.chunks};
}

}  // namespace ricci::cpu
