// The checks attention and its backward op share.
#pragma once

#include <optional>

#include "ricci/op/attention.h"
#include "ricci/op/infer.h"

namespace ricci {

struct HeadedShape {
  Dim batch;
  Dim sequence;
  bool matches = false;  ///< heads and width are as the attributes say
};
/// Nothing when the rank does not fit the layout.
[[nodiscard]] std::optional<HeadedShape> headed_shape(AttentionLayout layout, const Dims& dims,
                                                      std::int64_t heads, std::int64_t head_dim);

struct AttentionShape {
  Dim batch;
  Dim queries;
  Dim keys;
  AttentionLayout layout = AttentionLayout::Fused;
};
/// Checks q, k, v (operands 0 to 2) and the mask at `mask_index`, if `mask_given`, against
/// constraints c1 to c10.
AttentionShape check_attention(const op::Attention& op, const InferContext& in,
                               std::size_t mask_index, bool mask_given);

}  // namespace ricci
