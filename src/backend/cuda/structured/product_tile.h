// How implicit products are cut up: which tile of the results a block has, and into how many parts
// their products go, so that a GPU is busy and little is multiplied that nobody wants.
#pragma once

#include <cstdint>

#include "ricci/type/dtype.h"

namespace ricci::cuda {

inline constexpr std::int64_t TileDepth = 16;

enum class Multiply : std::uint8_t {
  Fused,  ///< each product is added at once, in the precision of the sums
  Tf32,   ///< tensor cores, of f32 that is rounded to tf32
  Small,  ///< tensor cores, of small floats
};

/// Warps beside and below each other, and `slices` of them for the same results, each with its
/// share of every `depth` products. A lane has `own_rows` by `own_columns` of its warp's tile.
struct ProductTile {
  std::int64_t rows = 64;
  std::int64_t columns = 128;
  std::int64_t own_rows = 8;
  std::int64_t own_columns = 8;
  std::int64_t lanes_down = 4;  ///< of a warp's 32
  std::int64_t slices = 1;
  std::int64_t depth = TileDepth;  ///< products at a time

  [[nodiscard]] std::int64_t lanes_across() const { return 32 / lanes_down; }
  [[nodiscard]] std::int64_t warp_rows() const { return lanes_down * own_rows; }
  [[nodiscard]] std::int64_t warp_columns() const { return lanes_across() * own_columns; }
  [[nodiscard]] std::int64_t warps_down() const { return rows / warp_rows(); }
  [[nodiscard]] std::int64_t warps_across() const { return columns / warp_columns(); }
  [[nodiscard]] std::int64_t threads() const { return warps_down() * warps_across() * slices * 32; }
};

struct ProductSizes {
  DType dtype = DType::F32;
  Multiply multiply = Multiply::Fused;
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth_tiles = 0;  ///< of a tile's depth; factors beyond the products are zero
  std::int64_t row_padding = 0;  ///< numbers behind each row of factors in shared memory

  [[nodiscard]] std::int64_t results() const { return matrices * rows * columns; }
};

struct ProductSplit {
  ProductTile tile = {};
  std::int64_t parts = 1;  ///< of the products, which are added up behind
  double cycles = 0;       ///< that all of a GPU should need
};

/// What should take least time of the tiles that fit.
[[nodiscard]] ProductSplit choose_split(const ProductSizes& sizes,
                                        bool (*fits)(const ProductTile&));
/// The numbers of one stage of a block's shared memory, and how many stages there are.
[[nodiscard]] std::int64_t stage_elements(const ProductSizes& sizes, const ProductTile& tile);
[[nodiscard]] std::int64_t stages_of(const ProductSizes& sizes, const ProductTile& tile);

[[nodiscard]] constexpr std::int64_t tiles_over(std::int64_t size, std::int64_t tile) {
  return (size + tile - 1) / tile;
}

}  // namespace ricci::cuda
