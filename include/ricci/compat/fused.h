// Other forms of the fused ops.
#pragma once

#include <array>
#include <source_location>
#include <span>
#include <string_view>

#include "ricci/build/build.h"

namespace ricci {

/// Which norm follows a residual sum.
enum class ResidualNorm : std::uint8_t { Ln, Rms };
constexpr auto enumerator_names(ResidualNorm) {
  return std::to_array<std::string_view>({"ln", "rms"});
}

/// Both results of a fused residual norm, {sum, normalised}: what pre-norm networks need, which use
/// the sum again on the skip path. [residual-norm-two-outputs]
std::array<Value, 2> residual_norm_pair(ResidualNorm kind, std::span<const Value> operands,
                                        op::FusedResidualLn attrs = {},
                                        std::source_location loc = std::source_location::current());
inline std::array<Value, 2> residual_norm_pair(
    ResidualNorm kind, std::initializer_list<Value> operands, op::FusedResidualLn attrs = {},
    std::source_location loc = std::source_location::current()) {
  return residual_norm_pair(kind, std::span(operands.begin(), operands.size()), attrs, loc);
}

}  // namespace ricci
