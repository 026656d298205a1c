// Single gradients of attention, with what the op takes by position.
#pragma once

#include <array>
#include <cstdint>
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

}  // namespace ricci
