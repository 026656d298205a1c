#include "backend/cpu/run/tiling.h"

#include <algorithm>
#include <cstdlib>

#include "loop/cut.h"
#include "op/kinds.h"

namespace ricci::cpu {
namespace {

// Ranges of flat kernels are whole cache lines of any dtype.
constexpr std::int64_t ColumnGrain = 64;
// Rows that may run side by side are not parted where there are many.
constexpr std::int64_t RowGrain = 16;
// Squares are read for as many rows as there are in a vector, and columns in parts.
constexpr std::int64_t SquareColumns = 256;

std::int64_t wanted_tiles(const loop::Kernel& k) {
  constexpr std::int64_t TileWork = 1 << 17;
  constexpr std::int64_t MostTiles = 64;
  return std::clamp<std::int64_t>(k.work / TileWork, 1, MostTiles);
}

std::int64_t parts_of(std::int64_t count, std::int64_t grain) {
  return (count + grain - 1) / grain;
}

// Range number `n` of so many, of whole grains.
std::pair<std::int64_t, std::int64_t> cut_grains(std::int64_t count, std::int64_t grain,
                                                 std::int64_t ranges, std::int64_t n) {
  const auto [a, b] = loop::cut(parts_of(count, grain), ranges, n);
  return {std::min(a * grain, count), std::min(b * grain, count)};
}

// Into how many parts rows are cut, and columns, of a kernel with crossed loads.
struct Grid {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};
Grid grid_of(const loop::Kernel& k) {
  const std::int64_t wanted = wanted_tiles(k);
  const std::int64_t rows = std::clamp<std::int64_t>(k.rows() / RowGrain, 1, wanted);
  const std::int64_t columns = parts_of(wanted, rows);
  return {rows, std::min(columns, parts_of(k.row_elements(), SquareColumns))};
}

}  // namespace

bool is_short_kernel(const loop::Kernel& kernel) {
  constexpr std::int64_t FewElements = 4096;
  return kernel.rows() * kernel.row_elements() <= FewElements;
}

std::vector<loop::Reg> crossed_loads(const loop::Kernel& kernel) {
  constexpr std::int64_t FewRows = 8;
  if (is_short_kernel(kernel) || !kernel.accumulators.empty() || !kernel.reductions.empty() ||
      kernel.kept == 0 || kernel.kept != kernel.outer ||
      kernel.outer + 1 != kernel.extents.size() || kernel.stages.empty()) {
    return {};
  }
  const std::size_t last = kernel.outer;
  if (kernel.extents[last] < FewRows || kernel.extents[last - 1] < FewRows) return {};
  // Before the elements there may be what is computed once a row, of which nothing is stored.
  for (const loop::Stage& stage : kernel.stages) {
    const bool at_end = &stage == &kernel.stages.back();
    if (stage.per_element != at_end || (!at_end && !stage.stores.empty())) return {};
  }
  std::vector<loop::Reg> found;
  for (const loop::Reg r : kernel.stages.back().code) {
    const loop::Instr& i = kernel.code[static_cast<std::size_t>(r)];
    if (i.code != loop::Code::Load) continue;
    const auto role = kernel.arguments[static_cast<std::size_t>(i.access.argument)].role;
    if (role != loop::ArgumentRole::In) return {};
    if (is_complex(i.dtype) || !i.access.terms.empty() || !i.access.guards.empty()) continue;
    if (i.access.strides[last - 1] == 1 && std::abs(i.access.strides[last]) > NearStride) {
      found.push_back(r);
    }
  }
  return found;
}

std::int64_t tile_count(const loop::Kernel& k) {
  const std::int64_t wanted = wanted_tiles(k);
  const auto at_most = [&](std::int64_t parts) {
    return std::min(wanted, std::max<std::int64_t>(parts, 1));
  };
  if (k.flat) return at_most(k.row_elements() / ColumnGrain);
  if (!crossed_loads(k).empty()) {
    const Grid grid = grid_of(k);
    return grid.rows * grid.columns;
  }
  if (k.accumulators.empty()) return at_most(k.rows());
  // A tile of several kept rows accumulates each for itself, so chunks need tiles of one kept row.
  if (k.chunks > 1) return std::max<std::int64_t>(k.kept_rows(), 1) * k.chunks;
  return at_most(k.kept_rows());
}

TileRange tile_range(const loop::Kernel& k, std::int64_t tiles, std::int64_t tile) {
  if (k.flat) {
    const auto [first, last] = cut_grains(k.extents[0], ColumnGrain, tiles, tile);
    return {.first = first, .last = last};
  }
  if (!crossed_loads(k).empty()) {
    const Grid grid = grid_of(k);
    const auto [first, last] = cut_grains(k.rows(), RowGrain, grid.rows, tile / grid.columns);
    const auto [left, right] =
        cut_grains(k.row_elements(), SquareColumns, grid.columns, tile % grid.columns);
    return {first, last, left, right};
  }
  if (k.accumulators.empty()) {
    const std::int64_t grain = k.rows() >= tiles * RowGrain * 4 ? RowGrain : 1;
    const auto [first, last] = cut_grains(k.rows(), grain, tiles, tile);
    return {.first = first, .last = last};
  }
  const auto [first, last] = loop::cut(k.kept_rows(), tiles / k.chunks, tile / k.chunks);
  const auto [inner_first, inner_last] = loop::chunk_rows(k, tile % k.chunks);
  return {first, last, inner_first, inner_last, first * k.chunks + tile % k.chunks};
}

TileRange range_of_rows(const loop::Kernel& k, std::int64_t first, std::int64_t last) {
  TileRange range{.first = first, .last = last};
  if (!crossed_loads(k).empty()) range.inner_last = k.row_elements();
  return range;
}

}  // namespace ricci::cpu
