// Storage types for f16 and bf16. They only store: arithmetic happens in f32 or f64, and a value is
// rounded once, to nearest even, when it is stored.
#pragma once

#include <bit>
#include <cstdint>

namespace ricci {

namespace detail {
/// Rounds an f64 to a binary float of 16 bits with `exponent_bits`, to nearest even, in one step.
[[nodiscard]] std::uint16_t round_to_16(double v, int exponent_bits) noexcept;
[[nodiscard]] double widen_16(std::uint16_t bits, int exponent_bits) noexcept;
}  // namespace detail

/// IEEE half: 1 sign, 5 exponent and 10 fraction bits.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  explicit Float16(double v) noexcept : bits(detail::round_to_16(v, 5)) {}
  explicit operator double() const noexcept { return detail::widen_16(bits, 5); }
  bool operator==(const Float16&) const = default;
};

/// bfloat16: 1 sign, 8 exponent and 7 fraction bits.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(double v) noexcept : bits(detail::round_to_16(v, 8)) {}
  explicit operator double() const noexcept { return detail::widen_16(bits, 8); }
  bool operator==(const BFloat16&) const = default;
};

}  // namespace ricci
