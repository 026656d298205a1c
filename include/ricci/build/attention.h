// Attention builders besides the derived ones.
#pragma once

#include <array>
#include <source_location>
#include <string_view>

#include "ricci/ir/graph.h"
#include "ricci/op/attention.h"

namespace ricci {

/// Which gradient of attention.
enum class AttentionWrt : std::uint8_t { Query, Key, Value, Bias };
constexpr auto enumerator_names(AttentionWrt) {
  return std::to_array<std::string_view>({"query", "key", "value", "bias"});
}

/// One gradient of attention: the merged backward op with only that result wanted. `mask` is given
/// exactly for mask_kind custom and bias.
Value attention_backward_wrt(AttentionWrt wrt, Value q, Value k, Value v, Value dy,
                             std::int64_t heads, std::int64_t head_dim, MaskKind mask_kind = {},
                             Value mask = {},
                             std::source_location loc = std::source_location::current());

/// dq, dk and dv.
std::array<Value, 3> attention_backward_all(
    Value q, Value k, Value v, Value dy, std::int64_t heads, std::int64_t head_dim,
    MaskKind mask_kind = {}, Value mask = {},
    std::source_location loc = std::source_location::current());

struct AttentionWithLse {
  Value out;
  Value lse;
};
/// Attention with its row statistics; `mask` as above.
AttentionWithLse attention_with_lse(Value q, Value k, Value v, op::Attention attrs, Value mask = {},
                                    std::source_location loc = std::source_location::current());

/// Attention whose values have a width of their own, `value_dim` a head: v and the result hold it
/// in place of head_dim. The scale is 1/√head_dim unless given. `mask` as above.
Value attention_with_value_width(Value q, Value k, Value v, op::Attention attrs,
                                 std::int64_t value_dim, Value mask = {},
                                 std::source_location loc = std::source_location::current());

}  // namespace ricci
