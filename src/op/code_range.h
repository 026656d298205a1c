// The numbers that codes can be, and how elements share scales.
#pragma once

#include <optional>

#include "ricci/op/quant.h"

namespace ricci {

struct CodeRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
  [[nodiscard]] bool holds(std::int64_t code) const { return code >= low && code <= high; }
};
/// Of whole numbers.
[[nodiscard]] CodeRange range_of(CodeKind kind);
[[nodiscard]] CodeRange range_of(DType dtype);
[[nodiscard]] inline bool is_floating_code(CodeKind kind) {
  return kind == CodeKind::E4m3 || kind == CodeKind::E5m2;
}
/// The kind of the integers of a dtype; nothing where it holds no codes.
[[nodiscard]] std::optional<CodeKind> code_kind_of(DType dtype);

/// The range a product of codes is clamped to.
template <class Op>
[[nodiscard]] CodeRange clamped_range(const Op& op) {
  const CodeRange all = range_of(op.to);
  return {op.low.value_or(all.low), op.high.value_or(all.high)};
}

/// 2^(bits - 1) - 1
[[nodiscard]] inline double largest_code(std::int64_t bits) {
  return static_cast<double>((std::int64_t{1} << (bits - 1)) - 1);
}
/// 2^bits - 1
[[nodiscard]] inline double last_code(std::int64_t bits) {
  return static_cast<double>((std::int64_t{1} << bits) - 1);
}

/// Which elements of an array share a scale: the array with an axis of groups split in two, the
/// axes over which a scale is the same, and the sizes of the scales.
struct ScaleSharing {
  Dims split;
  Axes shared;
  Dims kept;    ///< `split` with sizes 1 where it is shared: broadcasts
  Dims scales;  ///< as an operand has them
};
/// Nothing where a group does not divide its axis.
[[nodiscard]] std::optional<ScaleSharing> scale_sharing(const Dims& x,
                                                        const std::optional<Axis>& axis,
                                                        const std::optional<std::int64_t>& group);

}  // namespace ricci
