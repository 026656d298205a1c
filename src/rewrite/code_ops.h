// What passes of quantisation ask about quantize and dequantize.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "ricci/compiler/rewrite/quantize.h"

#include "op/code_range.h"

namespace ricci {

/// How dequantize reads codes of a dtype; nothing where those are none.
[[nodiscard]] inline std::optional<CodeParams> params_of(const op::Dequantize& op, DType codes) {
  const std::optional<CodeKind> kind = op.from ? op.from : code_kind_of(codes);
  if (!kind) return std::nullopt;
  return CodeParams{op.axis, op.scales, op.zero_points, *kind};
}

[[nodiscard]] inline CodeParams params_of(const op::Quantize& op) {
  return {op.axis, op.scales, op.zero_points, op.to};
}

[[nodiscard]] inline op::Quantize quantize_op(const CodeParams& p) {
  return {.axis = p.axis, .scales = p.scales, .zero_points = p.zero_points, .to = p.to};
}

[[nodiscard]] inline op::Dequantize dequantize_op(const CodeParams& p, DType to) {
  const bool plain = code_kind_of(code_dtype_of(p.to)) == p.to;
  return {.axis = p.axis,
          .scales = p.scales,
          .zero_points = p.zero_points,
          .from = plain ? std::nullopt : std::optional(p.to),
          .to = to};
}

/// The zero point of a channel; those left out are 0.
[[nodiscard]] inline std::int64_t zero_point(const CodeParams& p, std::size_t channel) {
  return p.zero_points.empty() ? 0 : p.zero_points[channel];
}

/// Do both say the same, zero points that are left out and those that are 0 alike?
[[nodiscard]] inline bool say_the_same(const CodeParams& a, const CodeParams& b) {
  if (a.axis != b.axis || a.scales != b.scales || a.to != b.to) return false;
  for (std::size_t c = 0; c < a.scales.size(); ++c) {
    if (zero_point(a, c) != zero_point(b, c)) return false;
  }
  return true;
}

}  // namespace ricci
