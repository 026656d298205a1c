#include "backend/cpu/run/tiling.h"

#include <algorithm>
#include <tuple>

namespace ricci::cpu {
namespace {

// Ranges of flat kernels are whole cache lines of any dtype.
constexpr std::int64_t ColumnGrain = 64;

// [0, n) cut in `parts`, part number p.
std::pair<std::int64_t, std::int64_t> cut(std::int64_t n, std::int64_t parts, std::int64_t p) {
  return {n / parts * p + std::min(p, n % parts), n / parts * (p + 1) + std::min(p + 1, n % parts)};
}

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
  TileRange r;
  if (k.flat) {
    const std::int64_t n = k.extents[0];
    const auto [a, b] = cut((n + ColumnGrain - 1) / ColumnGrain, tiles, tile);
    r.first = std::min(a * ColumnGrain, n);
    r.last = std::min(b * ColumnGrain, n);
    return r;
  }
  if (k.accumulators.empty()) {
    std::tie(r.first, r.last) = cut(k.rows(), tiles, tile);
    return r;
  }
  std::tie(r.first, r.last) = cut(k.kept_rows(), tiles / k.chunks, tile / k.chunks);
  std::tie(r.inner_first, r.inner_last) = cut(k.accumulated_rows(), k.chunks, tile % k.chunks);
  r.slot = r.first * k.chunks + tile % k.chunks;
  return r;
}

}  // namespace ricci::cpu
