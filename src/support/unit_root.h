// Roots of unity, each rounded once.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <utility>

namespace ricci {

/// e^(2πi·k/n), n up to 2^59. Halves, quarters and eighths of the circle are exact, and roots that
/// mirror each other are equal but for their signs.
[[nodiscard]] inline std::complex<double> unit_root(std::int64_t k, std::int64_t n) {
  k %= n;
  if (k < 0) k += n;
  // Eighths of the circle: the angle is π/4 · x/n.
  std::int64_t x = 8 * k;
  const bool below = x >= 4 * n;
  if (below) x = 8 * n - x;
  const bool left = x >= 2 * n;
  if (left) x -= 2 * n;
  const bool steep = x >= n;
  if (steep) x = 2 * n - x;
  const long double angle = std::numbers::pi_v<long double> / 4 * static_cast<long double>(x) /
                            static_cast<long double>(n);
  auto re = static_cast<double>(std::cos(angle));
  auto im = static_cast<double>(std::sin(angle));
  if (steep) std::swap(re, im);
  if (left) {
    std::swap(re, im);
    re = -re;
  }
  return {re, below ? -im : im};
}

}  // namespace ricci
