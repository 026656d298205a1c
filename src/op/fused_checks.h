// What the type rules of fused ops and of blocks check alike.
#pragma once

#include <string_view>

#include "ricci/op/attention.h"
#include "ricci/op/infer.h"

#include "op/fused_operands.h"

namespace ricci {

/// Rejects `label` unless operand `k` has these sizes; an absent one has any.
void require_dims(const InferContext& in, std::string_view label, std::size_t k,
                  std::string_view operand, const Dims& expected);
/// Attention's own rule says whether the mask fits queries and keys made from operand 0.
void require_mask(const InferContext& in, std::string_view label, const op::Attention& attention,
                  std::size_t mask);
/// Tables of a rotation have a row for each of `steps` and a column for each pair of a head.
void require_tables(const InferContext& in, std::string_view label, std::size_t cos,
                    std::size_t sin, const Dim& steps, std::int64_t head_dim);

}  // namespace ricci
