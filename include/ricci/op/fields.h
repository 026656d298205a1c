// What an op header needs to declare its struct, info and fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ricci/op/attr.h"
#include "ricci/op/info.h"

namespace ricci {

/// How a field appears: left out when it has its default, demanded, or written before the braces
/// (`input "x"`).
enum class Presence : std::uint8_t { Defaulted, Required, Positional };

/// The largest size, count or distance there is, 2^48: no machine addresses more. Sums of several,
/// and of what they are multiplied with along an axis, stay within 64 bits.
inline constexpr std::int64_t LargestSize = std::int64_t{1} << 48;

/// Which numbers a field takes at all; the op's constraints narrow it further.
enum class Range : std::uint8_t {
  Usual,   ///< integers up to LargestSize in magnitude; reals as `real_range` says
  Window,  ///< integers below 2^31 in magnitude: how windows lie on an image
  Factor,  ///< reals: 0, or between 2^-64 and 2^64 in magnitude, so that products stay numbers
  Any,     ///< every 64-bit integer: keys, seeds, budgets
};

}  // namespace ricci
