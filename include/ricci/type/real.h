// A real number as an attribute: compared and hashed by its bits, so that NaN equals itself and
// -0.0 differs from 0.0.
#pragma once

#include <bit>
#include <cstdint>

namespace ricci {

struct Real {
  double value = 0;

  constexpr Real() = default;
  constexpr Real(double v) : value(v) {}               // NOLINT: a number is a Real
  constexpr operator double() const { return value; }  // NOLINT
  [[nodiscard]] std::uint64_t bits() const noexcept { return std::bit_cast<std::uint64_t>(value); }
  friend bool operator==(const Real& a, const Real& b) noexcept { return a.bits() == b.bits(); }
};

}  // namespace ricci
