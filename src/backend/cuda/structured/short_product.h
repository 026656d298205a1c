// Products of f32 that take about as long as a launch does. A library puts few blocks to work on
// them, or splits them up and adds the parts in a launch of its own, and what stands behind them is
// another: here a product and its kernel behind are one launch that has all of the GPU.
#pragma once

#include <cstdint>
#include <string>

#include "backend/cuda/structured/plan_builder.h"

namespace ricci::cuda {

/// A matrix in memory, in elements; `offset`: of the first one of batch `z`, an expression.
struct FactorLayout {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t alignment = 1;  ///< in elements: of all first ones
  std::string offset = "0";
};

struct ShortProduct {
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  FactorLayout a;
  FactorLayout b;
  bool narrow = true;    ///< an int has room for every place
  bool in_order = true;  ///< the results lie row-major, matrix by matrix
};

/// Plans the product, and what the call does behind it where that is a thing of each element; false
/// where the product is too large, or so small that a kernel of its own is not worth compiling.
[[nodiscard]] bool plan_short_product(PlanBuilder& builder, const Program& program,
                                      const ShortProduct& product);

}  // namespace ricci::cuda
