// What expansions and derivatives of quantising ops share.
#pragma once

#include <optional>
#include <vector>

#include "ricci/build/build.h"
#include "ricci/op/quant.h"

#include "op/code_range.h"
#include "type/epsilon.h"

namespace ricci::rule {

/// The least a scale is.
inline constexpr double LeastScale = 1e-12;

/// How many steps a clipped derivative passes at most: q, and what rounding takes from the largest
/// value itself when it is divided by q and multiplied again.
[[nodiscard]] inline double last_unclipped(std::int64_t bits, DType dtype) {
  return largest_code(bits) * (1 + 2 * epsilon_of(dtype));
}

/// max(low, min(v, high))
[[nodiscard]] inline Value clamped(Value v, double low, double high) {
  return max(min(v, high), low);
}

/// One number a channel, of a dtype, such that it broadcasts along `axis` of a value of some rank.
[[nodiscard]] Value per_channel(Graph& graph, const std::vector<double>& numbers, DType dtype,
                                const std::optional<Axis>& axis, std::size_t rank);
/// The scales of quantize or dequantize so.
template <class Op>
[[nodiscard]] Value scales_of(Graph& graph, const Op& op, DType dtype, std::size_t rank) {
  std::vector<double> numbers;
  for (const Real& s : op.scales) numbers.push_back(s.value);
  return per_channel(graph, numbers, dtype, op.axis, rank);
}
/// Zero points, in the same way; invalid when there are none.
template <class Op>
[[nodiscard]] Value zero_points_of(Graph& graph, const Op& op, DType dtype, std::size_t rank) {
  if (op.zero_points.empty()) return {};
  const std::vector<double> numbers(op.zero_points.begin(), op.zero_points.end());
  return per_channel(graph, numbers, dtype, op.axis, rank);
}

/// How a value is scaled: arrays that broadcast against it once it is split.
struct FakeScale {
  ScaleSharing sharing;
  Value scale;
  Value zero;   ///< asymmetric codes only
  Value state;  ///< scales, or ranges, as an operand has them
};
[[nodiscard]] FakeScale fake_scale(const op::FakeQuantize& op, Value x, Value state);
/// The same from the scales or ranges themselves.
[[nodiscard]] FakeScale fake_scale(const op::FakeQuantizeBackward& op, const Dims& x, Value given);

/// ψ, and where z lies in range, of fake_quantize_lsq.
struct LsqSlopes {
  ScaleSharing sharing;
  Value inside;
  Value by_scale;
};
[[nodiscard]] LsqSlopes lsq_slopes(Value x, Value scale, std::int64_t bits,
                                   const std::optional<Axis>& axis);
/// The factor of the scale's derivative: 1/√(N·q).
[[nodiscard]] Value lsq_grad_factor(Value x, const ScaleSharing& sharing, std::int64_t bits);

}  // namespace ricci::rule
