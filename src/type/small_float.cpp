#include "ricci/type/small_float.h"

#include <cmath>

namespace ricci::detail {

std::uint16_t round_to_16(double v, int exponent_bits) noexcept {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint16_t infinity =
      static_cast<std::uint16_t>(((1U << exponent_bits) - 1U) << fraction_bits);
  const auto wide = std::bit_cast<std::uint64_t>(v);
  const auto sign = static_cast<std::uint16_t>((wide >> 63) << 15);
  if (std::isnan(v)) {
    const auto payload =
        static_cast<std::uint16_t>((wide & 0xFFFFFFFFFFFFFULL) >> (52 - fraction_bits));
    const auto quiet = static_cast<std::uint16_t>(1U << (fraction_bits - 1));
    return static_cast<std::uint16_t>(sign | infinity | (payload != 0 ? payload : quiet));
  }
  const double magnitude = std::fabs(v);
  if (std::isinf(v)) return static_cast<std::uint16_t>(sign | infinity);
  if (magnitude == 0) return sign;
  // Scale so that one unit in the last place of the result is 1, then round to nearest even.
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, m in [0.5, 1)
  const int smallest = 1 - bias;     // exponent of the smallest normal number
  const int e = std::max(exponent - 1, smallest);
  const double units = std::nearbyint(std::ldexp(magnitude, fraction_bits - e));
  // Adding the encoded exponent lets a carry out of the fraction move into the exponent.
  const auto encoded =
      static_cast<std::int64_t>(units) + (static_cast<std::int64_t>(e - smallest) << fraction_bits);
  if (encoded >= infinity) return static_cast<std::uint16_t>(sign | infinity);
  return static_cast<std::uint16_t>(sign | encoded);
}

double widen_16(std::uint16_t bits, int exponent_bits) noexcept {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent_mask = (1 << exponent_bits) - 1;
  const int exponent = (bits >> fraction_bits) & exponent_mask;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const std::uint64_t sign = static_cast<std::uint64_t>(bits >> 15) << 63;
  if (exponent == exponent_mask) {
    return std::bit_cast<double>(sign | 0x7FF0000000000000ULL |
                                 (static_cast<std::uint64_t>(fraction) << (52 - fraction_bits)));
  }
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                    : std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace ricci::detail
