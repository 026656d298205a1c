// Attention builders besides the derived ones.
#pragma once

#include <cstdint>
#include <source_location>

#include "ricci/ir/graph.h"
#include "ricci/op/attention.h"

namespace ricci {

struct AttentionWithLse {
  Value out;
  Value lse;
};
/// Attention with its row statistics; `mask` is given exactly for mask_kind custom and bias.
AttentionWithLse attention_with_lse(Value q, Value k, Value v, op::Attention attrs, Value mask = {},
                                    std::source_location loc = std::source_location::current());

/// Attention whose values have a width of their own, `value_dim` a head: v and the result hold it
/// in place of head_dim. The scale is 1/√head_dim unless given. `mask` as above.
Value attention_with_value_width(Value q, Value k, Value v, op::Attention attrs,
                                 std::int64_t value_dim, Value mask = {},
                                 std::source_location loc = std::source_location::current());

}  // namespace ricci
