#include "ricci/quant/tiny_float.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace ricci::quant {
namespace {

// A float of 8 bits: 1 sign, `exponent` and `fraction` bits, without its special codes.
struct TinyLayout {
  int exponent;
  int fraction;
  int bias;
  float largest;
};
constexpr TinyLayout E4m3 = {4, 3, 7, 448.0F};
constexpr TinyLayout E5m2 = {5, 2, 15, 57344.0F};

constexpr std::array<float, 16> Fp4Values = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,
                                             4.0F,  6.0F,  -0.0F, -0.5F, -1.0F, -1.5F,
                                             -2.0F, -3.0F, -4.0F, -6.0F};

float tiny_value(std::uint8_t code, const TinyLayout& f) noexcept {
  const int exponent = (code >> f.fraction) & ((1 << f.exponent) - 1);
  const int fraction = code & ((1 << f.fraction) - 1);
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), 1 - f.bias - f.fraction)
                              : std::ldexp(static_cast<float>(fraction + (1 << f.fraction)),
                                           exponent - f.bias - f.fraction);
  const bool negative = ((code >> (f.exponent + f.fraction)) & 1) != 0;
  return negative ? -magnitude : magnitude;
}

// Finite values and infinities, both held within the largest finite one.
std::uint8_t tiny_code(float value, const TinyLayout& f) noexcept {
  const unsigned sign = std::signbit(value) ? 1U << (f.exponent + f.fraction) : 0U;
  const float magnitude = std::min(std::fabs(value), f.largest);
  if (magnitude == 0) return static_cast<std::uint8_t>(sign);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, m in [0.5, 1)
  const int smallest = 1 - f.bias;
  const int e = std::max(exponent - 1, smallest);
  // In units of the last place; a carry out of the fraction moves into the exponent.
  const auto units =
      static_cast<int>(std::nearbyint(std::ldexp(static_cast<double>(magnitude), f.fraction - e)));
  return static_cast<std::uint8_t>(sign |
                                   static_cast<unsigned>(units + ((e - smallest) << f.fraction)));
}

}  // namespace

float fp4_value(std::uint8_t code) noexcept { return Fp4Values[code & 15U]; }

float fp8_e4m3_value(std::uint8_t code) noexcept {
  if ((code & 0x7FU) == 0x7FU) return std::numeric_limits<float>::quiet_NaN();
  return tiny_value(code, E4m3);
}

float fp8_e5m2_value(std::uint8_t code) noexcept {
  if ((code & 0x7FU) > 0x7CU) return std::numeric_limits<float>::quiet_NaN();
  if ((code & 0x7FU) == 0x7CU) {
    const float infinity = std::numeric_limits<float>::infinity();
    return (code & 0x80U) != 0 ? -infinity : infinity;
  }
  return tiny_value(code, E5m2);
}

float e8m0_value(std::uint8_t code) noexcept {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, code - 127);
}

std::uint8_t to_fp8_e4m3(float value) noexcept {
  if (std::isnan(value)) return std::signbit(value) ? 0xFF : 0x7F;
  return tiny_code(value, E4m3);
}

std::uint8_t to_fp8_e5m2(float value) noexcept {
  const unsigned sign = std::signbit(value) ? 0x80U : 0U;
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7EU);
  if (std::isinf(value)) return static_cast<std::uint8_t>(sign | 0x7CU);
  return tiny_code(value, E5m2);
}

// How many middles between neighbours the magnitude is above; a middle itself goes to the even
// code.
std::uint8_t to_fp4(float value) noexcept {
  if (std::isnan(value)) return 0;
  const float m = std::fabs(value);
  const int code = (m > 0.25F) + (m >= 0.75F) + (m > 1.25F) + (m >= 1.75F) + (m > 2.5F) +
                   (m >= 3.5F) + (m > 5.0F);
  return static_cast<std::uint8_t>(std::signbit(value) ? code + 8 : code);
}

}  // namespace ricci::quant
