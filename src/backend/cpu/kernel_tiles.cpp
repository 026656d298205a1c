// What of a kernel its tiles and its code depend on.
#include <algorithm>
#include <tuple>

#include "backend/cpu/kernel_code.h"

namespace ricci::cpu {
namespace {

using loop::Code;
using loop::Instr;
using loop::Kernel;
using loop::Reg;

// [0, n) cut in `parts`, part number p.
std::pair<std::int64_t, std::int64_t> cut(std::int64_t n, std::int64_t parts, std::int64_t p) {
  return {n / parts * p + std::min(p, n % parts), n / parts * (p + 1) + std::min(p + 1, n % parts)};
}

}  // namespace

bool is_short_kernel(const Kernel& kernel) {
  constexpr std::int64_t FewElements = 4096;
  return kernel.rows() * kernel.row_elements() <= FewElements;
}

// How many lanes suit a stage: as many as fill a register with its widest floats.
int lanes_for(const Kernel& kernel, const loop::Stage& stage, const TargetInfo& target) {
  std::int64_t widest = 0;
  std::int64_t widest_int = 1;
  for (const Reg r : stage.code) {
    const Instr& i = kernel.code[static_cast<std::size_t>(r)];
    if (i.dtype == DType::C128) return 1;
    if (is_float(i.dtype))
      widest = std::max<std::int64_t>(widest, std::max<std::int64_t>(size_of(i.dtype), 4));
    widest_int = std::max(widest_int, size_of(i.dtype));
  }
  for (const loop::Store& s : stage.stores) {
    const DType d = kernel.arguments[static_cast<std::size_t>(s.access.argument)].dtype;
    if (d == DType::C128) return 1;
    widest_int = std::max(widest_int, size_of(d));
  }
  if (widest == 0) widest = std::max<std::int64_t>(widest_int, 4);
  return target.vector_bits / static_cast<int>(8 * widest);
}

// Vectors handled together: reductions need several to hide the latency of adding; everything
// else is kept busy by the processor itself. Fewer compile sooner.
int unroll_for(const Kernel& kernel, const loop::Stage& stage) {
  if (is_short_kernel(kernel)) return 1;
  std::int64_t total = 0;
  for (const Reg r : stage.code) total += loop::weight(kernel.code[static_cast<std::size_t>(r)]);
  if (stage.reductions.empty()) return total > 8 ? 1 : 2;
  if (total > 24) return 1;
  return total > 8 ? 2 : 4;
}

TileRange tile_range(const Kernel& k, std::int64_t tile) {
  TileRange r;
  if (k.by_columns) {
    // Cut at multiples of a cache line, whatever the dtype.
    constexpr std::int64_t Grain = 64;
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

std::string code_key(const Kernel& kernel) {
  Kernel plain = kernel;
  const bool is_short = is_short_kernel(kernel);
  plain.name = "k";
  plain.tiles = 1;
  // Chunks stay: they say where accumulated results go.
  if (plain.by_columns) plain.extents = {0};
  return (is_short ? "short " : "") + loop::to_string(plain);
}

}  // namespace ricci::cpu
