// Sums of products Σ_k a(z, m, k) · b(z, k, n), z times, whose matrices are never made: code says
// where the factors are. A block has a tile of the results, goes through the products sixteen at a
// time, and has the next ones copied into shared memory meanwhile. Every sum has one owner.
#pragma once

#include <cstdint>
#include <string>

#include "backend/cuda/structured/plan_builder.h"

namespace ricci::cuda {

inline constexpr std::int64_t TileDepth = 16;

/// How a block does its tile: warps beside and below each other, and `slices` of them for the same
/// results, each with its share of every sixteen products. A lane has `own_rows` by `own_columns`.
struct ProductTile {
  std::int64_t rows = 64;
  std::int64_t columns = 128;
  std::int64_t own_rows = 8;
  std::int64_t own_columns = 8;
  std::int64_t lanes_down = 4;  ///< of a warp's 32
  std::int64_t slices = 1;

  [[nodiscard]] std::int64_t lanes_across() const { return 32 / lanes_down; }
  [[nodiscard]] std::int64_t warps_down() const { return rows / (lanes_down * own_rows); }
  [[nodiscard]] std::int64_t warps_across() const {
    return columns / (lanes_across() * own_columns);
  }
  [[nodiscard]] std::int64_t threads() const { return warps_down() * warps_across() * slices * 32; }
};

struct ImplicitProduct {
  DType dtype = DType::F32;
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth_tiles = 0;  ///< of sixteen products; factors beyond the depth are zero
  bool narrow = true;            ///< an int has room for every place
  /// Four neighbouring columns, of which the first is a multiple of four, adjoin in the result.
  bool columns_adjoin = false;
  std::int64_t row_padding = 0;  ///< numbers behind each of the sixteen rows in shared memory
  ProductTile tile = {};
  std::int64_t parts = 1;  ///< of the products, which are added up behind
};

/// Code. Constants and functions; what a thread finds out before it begins; what copies tile `t` to
/// `left` [16][LEFT] and `right` [16][RIGHT]; the place of a result (z, m, n), and whether there is
/// one.
struct ImplicitProductText {
  std::string before = {};
  std::string begin = {};
  std::string load = {};
  std::string place = {};
  std::string is_real = "true";
};

/// Sets the tile, one that `fits`, and the number of parts that should take least time; gives it,
/// in cycles of all multiprocessors.
double choose_tile(ImplicitProduct& product, bool (*fits)(const ProductTile&));
/// The types of places, `I`, and of numbers, `T` as they are stored and `H` in registers.
[[nodiscard]] std::string product_types(DType dtype, bool narrow);
void plan_implicit_product(PlanBuilder& builder, const ImplicitProduct& product,
                           const ImplicitProductText& text, Place a, Place b);
/// Adds up parts that lie behind each other; `place` is that of sum `i` in the result.
void plan_sum_of_parts(PlanBuilder& builder, DType dtype, std::int64_t parts, std::int64_t results,
                       Place from, const std::string& before, const std::string& place);

}  // namespace ricci::cuda
