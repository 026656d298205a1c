// The matrix that the operands of a weight in few bits stand for: its scheme and its sizes.
#pragma once

#include <cstdint>
#include <span>

#include "ricci/op/packed.h"
#include "ricci/quant/scheme.h"
#include "ricci/type/type.h"

namespace ricci {

struct PackedWeight {
  quant::Scheme scheme;
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t matrices = 1;
};

/// Of ops that were inferred for such operands.
[[nodiscard]] PackedWeight packed_weight(const op::DequantMatmul& op,
                                         std::span<const Type> operands);
[[nodiscard]] PackedWeight packed_weight(const op::DequantGroupedMatmul& op,
                                         std::span<const Type> operands);
[[nodiscard]] PackedWeight packed_weight(const op::DequantMoeWeights& op,
                                         std::span<const Type> operands);

}  // namespace ricci
