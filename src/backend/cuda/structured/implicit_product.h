// Sums of products Σ_k a(z, m, k) · b(z, k, n), z times, whose matrices are never made: code says
// where the factors are. A block has a tile of the results, goes through the products sixteen at a
// time, or more, and has the next ones copied into shared memory meanwhile. Every sum has one
// owner.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/structured/plan_builder.h"
#include "backend/cuda/structured/product_tile.h"

namespace ricci::cuda {

struct ImplicitProduct {
  ProductSizes sizes = {};
  ProductSplit split = {};
  bool narrow = true;  ///< an int has room for every place
  /// Four neighbouring columns, of which the first is a multiple of four, adjoin in the result.
  bool columns_adjoin = false;
  bool left_is_rounded = false;  ///< to tf32, where it has to be
  /// All threads of a block store its results, not those of the first slice alone: there are few
  /// blocks, or much is done with each result.
  bool all_store = false;
};

/// Code: constants and functions; what a thread finds out before it begins; what copies tile `t` to
/// `left` [DEPTH][LEFT] and `right` [DEPTH][RIGHT], by `copy_text`; what puts there what that has
/// only fetched, for dtypes that `are_fetched`, which are `fetched` of them a thread; the place of
/// a result (z, m, n), and whether there is one; what is done when those of row `m` from `first_n`
/// on are stored, at most WIDE of them, with the parameters it needs. Only whole sums are stored
/// then.
struct ImplicitProductText {
  std::string before = {};
  std::string begin = {};
  std::string load = {};
  std::string put = {};
  std::string fetched = "1";
  std::string place = {};
  std::string is_real = "true";
  std::string behind = {};
  std::vector<Parameter> behind_parameters = {};
};

/// Numbers that are too small to be copied behind a thread's back go through its registers.
[[nodiscard]] inline bool are_fetched(DType dtype) { return size_of(dtype) < 4; }
/// Copies a number, or zero where it is not `real`; `slot` says which of those a thread has
/// fetched.
[[nodiscard]] std::string copy_text(DType dtype, std::string_view slot, std::string_view to,
                                    std::string_view from, std::string_view real);
/// The types of places, `I`, and of numbers, `T` as they are stored and `H` in registers.
[[nodiscard]] std::string product_types(DType dtype, bool narrow);
void plan_implicit_product(PlanBuilder& builder, const ImplicitProduct& product,
                           const ImplicitProductText& text, Place a, Place b);
/// Adds up parts that lie behind each other; `store` does so with the `total` of sum `i`.
void plan_sum_of_parts(PlanBuilder& builder, DType dtype, std::int64_t parts, std::int64_t results,
                       Place from, const std::string& before, const std::string& store);

}  // namespace ricci::cuda
