// Sums of products Σ_k a(m, k) · b(k, n), z times, whose factors are wherever an expression says:
// matrix products, and convolutions without their matrices. A block has a tile of the results.
#pragma once

#include <string>

#include "backend/cuda/structured/plan_builder.h"

namespace ricci::cuda {

struct TiledSums {
  DType dtype = DType::F32;
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  /// Of the products, in this order, into as many parts, which are added up behind: for depths
  /// that are long while there are few results.
  std::int64_t parts = 1;
  std::int64_t reach = 0;  ///< no place is larger than this
  /// Code. What stands before the loops; what sets `value` to the factors for (z, m, k) and (z, k,
  /// n); and the place of the result for (z, m, n). Places are of the type I.
  std::string begin = {};
  std::string a;
  std::string b;
  std::string c;
  bool a_by_rows = true;  ///< neighbours in k adjoin, not in m
};

/// `a` and `b` are the names of operands 0 and 1, `c` of result 0.
void plan_tiled_sums(PlanBuilder& builder, const TiledSums& sums, Place a, Place b);
/// How many parts keep a GPU busy.
[[nodiscard]] std::int64_t parts_for(const TiledSums& sums);

}  // namespace ricci::cuda
