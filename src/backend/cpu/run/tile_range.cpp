#include <algorithm>
#include <tuple>

#include "backend/cpu/run/code_source.h"

namespace ricci::cpu {
namespace {

// [0, n) cut in `parts`, part number p.
std::pair<std::int64_t, std::int64_t> cut(std::int64_t n, std::int64_t parts, std::int64_t p) {
  return {n / parts * p + std::min(p, n % parts), n / parts * (p + 1) + std::min(p + 1, n % parts)};
}

}  // namespace

TileRange tile_range(const loop::Kernel& k, std::int64_t tile) {
  TileRange r;
  if (k.by_columns) {
    constexpr std::int64_t Grain = loop::Kernel::ColumnGrain;
    const std::int64_t n = k.extents[0];
    const auto [a, b] = cut((n + Grain - 1) / Grain, k.tiles, tile);
    r.first = std::min(a * Grain, n);
    r.last = std::min(b * Grain, n);
    return r;
  }
  if (k.accumulators.empty()) {
    std::tie(r.first, r.last) = cut(k.rows(), k.tiles, tile);
    return r;
  }
  std::tie(r.first, r.last) = cut(k.kept_rows(), k.tiles / k.chunks, tile / k.chunks);
  std::tie(r.inner_first, r.inner_last) = cut(k.accumulated_rows(), k.chunks, tile % k.chunks);
  r.slot = r.first * k.chunks + tile % k.chunks;
  return r;
}

}  // namespace ricci::cpu
