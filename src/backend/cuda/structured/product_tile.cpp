#include "backend/cuda/structured/product_tile.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace ricci::cuda {
namespace {

constexpr std::int64_t RoomBytes = 72 * 1024;  // of a block, so that three find room
constexpr std::int64_t MostStages = 4;
constexpr double Multiprocessors = 132;

// How near a tile comes to the pace of products alone.
struct Candidate {
  ProductTile tile;
  double pace = 1;
};

constexpr auto FusedTiles = std::to_array<Candidate>({
    {{.rows = 128, .columns = 128}, 0.9},
    {{.rows = 64, .columns = 128}, 0.9},
    {{.rows = 64, .columns = 128, .slices = 2}, 0.88},
    {{.rows = 128, .columns = 64}, 0.9},
    {{.rows = 128, .columns = 64, .slices = 2}, 0.88},
    {{.rows = 128, .columns = 96, .own_columns = 12, .lanes_down = 8}, 0.9},
    {{.rows = 64, .columns = 96, .own_columns = 12, .lanes_down = 8}, 0.88},
    {{.rows = 64, .columns = 96, .own_columns = 12, .lanes_down = 8, .slices = 2}, 0.88},
    {{.rows = 32, .columns = 256}, 0.85},
    {{.rows = 32, .columns = 128}, 0.82},
    {{.rows = 32, .columns = 128, .slices = 2}, 0.8},
    {{.rows = 64, .columns = 64}, 0.85},
    {{.rows = 64, .columns = 64, .slices = 2}, 0.84},
    {{.rows = 128, .columns = 32, .lanes_down = 8}, 0.8},
    {{.rows = 64, .columns = 32, .lanes_down = 8}, 0.7},
    {{.rows = 64, .columns = 32, .lanes_down = 8, .slices = 4}, 0.75},
    {{.rows = 16, .columns = 256, .own_rows = 4}, 0.6},
    {{.rows = 16, .columns = 128, .own_rows = 4}, 0.6},
    {{.rows = 32, .columns = 32, .own_rows = 4, .lanes_down = 8, .slices = 4}, 0.6},
    {{.rows = 16, .columns = 32, .own_rows = 4, .own_columns = 4, .slices = 4}, 0.35},
});

// High tiles of warps, since what is on the left is often rounded already.
constexpr auto TensorTiles = std::to_array<Candidate>({
    {{.rows = 128, .columns = 128, .own_columns = 16, .lanes_down = 8}, 1},
    {{.rows = 128, .columns = 128, .lanes_down = 8}, 0.95},
    {{.rows = 64, .columns = 256, .own_columns = 16, .lanes_down = 8}, 0.95},
    {{.rows = 64, .columns = 128, .own_columns = 16, .lanes_down = 8}, 0.9},
    {{.rows = 64, .columns = 128, .lanes_down = 8}, 0.85},
    {{.rows = 128, .columns = 64, .lanes_down = 8}, 0.85},
    {{.rows = 128, .columns = 96, .lanes_down = 8}, 0.85},
    {{.rows = 64, .columns = 96, .lanes_down = 8}, 0.8},
    {{.rows = 64, .columns = 64, .lanes_down = 8}, 0.75},
    {{.rows = 32, .columns = 256}, 0.75},
    {{.rows = 32, .columns = 128}, 0.7},
    {{.rows = 64, .columns = 32, .lanes_down = 8}, 0.6},
    {{.rows = 32, .columns = 32, .own_rows = 4, .lanes_down = 8}, 0.4},
    {{.rows = 16, .columns = 256, .own_rows = 4}, 0.5},
});

std::span<const Candidate> candidates(Multiply multiply) {
  if (multiply == Multiply::Fused) return FusedTiles;
  return TensorTiles;
}

// Of a multiprocessor.
double products_a_cycle(const ProductSizes& s) {
  switch (s.multiply) {
    case Multiply::Fused: return s.dtype == DType::F64 ? 64 : 128;
    case Multiply::Tf32: return 400;
    case Multiply::Small: return 800;
  }
  return 1;
}

double cycles_of(const ProductSizes& s, const ProductSplit& split, double pace) {
  constexpr double WarpsThatHideWaiting = 8;
  constexpr double CopiesACycle = 24;
  constexpr double BytesACycle = 2000;  // of the GPU
  constexpr double Launch = 4000;
  constexpr double BeginAndEnd = 48;  // as so many products of each result
  const ProductTile& t = split.tile;
  const double tiles = static_cast<double>(s.matrices * tiles_over(s.rows, t.rows) *
                                           tiles_over(s.columns, t.columns));
  const double in_turn = std::ceil(tiles * static_cast<double>(split.parts) / Multiprocessors);
  const double warps = std::min(in_turn, 4.0) * static_cast<double>(t.threads()) / 32;
  const double hidden = std::min(1.0, 0.4 + 0.6 * warps / WarpsThatHideWaiting);
  const double depth = static_cast<double>(tiles_over(s.depth_tiles, split.parts) * TileDepth);
  const double products = static_cast<double>(t.rows * t.columns) * (depth + BeginAndEnd);
  // Copies get in the way of what tensor cores read, too.
  const double copies = static_cast<double>(t.columns) * depth / CopiesACycle;
  const double own = products / products_a_cycle(s) / (pace * hidden) +
                     (s.multiply == Multiply::Fused ? 0.25 : 1.0) * copies;
  double cycles = in_turn * own;
  if (split.parts > 1) {
    cycles += Launch + 8 * static_cast<double>(s.results() * split.parts) / BytesACycle;
  }
  return cycles;
}

}  // namespace

std::int64_t stage_elements(const ProductSizes& s, const ProductTile& t) {
  return t.depth * (t.rows + t.columns + 2 * s.row_padding);
}

std::int64_t stages_of(const ProductSizes& s, const ProductTile& t) {
  return std::min(RoomBytes / (stage_elements(s, t) * size_of(s.dtype)), MostStages);
}

ProductSplit choose_split(const ProductSizes& s, bool (*fits)(const ProductTile&)) {
  constexpr std::int64_t ShortestPart = 8;
  ProductSplit best{.cycles = std::numeric_limits<double>::infinity()};
  for (const Candidate& candidate : candidates(s.multiply)) {
    ProductSplit split{.tile = candidate.tile};
    if (!fits(split.tile) || stages_of(s, split.tile) < 2) continue;
    const std::int64_t tiles = s.matrices * tiles_over(s.rows, split.tile.rows) *
                               tiles_over(s.columns, split.tile.columns);
    const std::int64_t most = std::max<std::int64_t>(s.depth_tiles / ShortestPart, 1);
    for (const std::int64_t full : {0, 1, 2, 3, 4}) {
      const std::int64_t wanted = full * static_cast<std::int64_t>(Multiprocessors) / tiles;
      split.parts = std::clamp<std::int64_t>(wanted, 1, most);
      split.cycles = cycles_of(s, split, candidate.pace);
      if (split.cycles < best.cycles) best = split;
    }
  }
  // None is empty.
  best.parts = tiles_over(s.depth_tiles, tiles_over(s.depth_tiles, best.parts));
  return best;
}

}  // namespace ricci::cuda
