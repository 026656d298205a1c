// Short rows of numbers that loops go through side by side. Sums over them are made in a fixed
// order, whatever the machine.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "backend/cpu/host/simd.h"

namespace ricci::cpu {

inline constexpr std::int64_t LaneCount = 32;
template <class N>
using Lanes = std::array<N, static_cast<std::size_t>(LaneCount)>;

/// Σ of all lanes, pairwise; they are used up.
template <class N>
[[nodiscard]] RICCI_INLINE inline N sum_lanes(Lanes<N>& v) {
  for (std::size_t half = v.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) v[i] += v[i + half];
  }
  return v[0];
}

/// e^x of every lane.
RICCI_INLINE inline void exp_lanes(Lanes<double>& v) {
  for (double& x : v) x = std::exp(x);
}

/// The same to within two units in the last place. One short loop a step: each has a vector form.
RICCI_INLINE inline void exp_lanes(Lanes<float>& v) {
  for (float& x : v) x = x < -104.0F ? -104.0F : x;  // 0 and infinity beyond
  for (float& x : v) x = x > 89.0F ? 89.0F : x;
  for (float& x : v) {
    constexpr float RoundToInt = 0x1.8p23F;
    const float shifted = x * 1.44269504F + RoundToInt;
    const float n = shifted - RoundToInt;
    // ln 2 in two parts; n times the first is exact.
    const float r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
    float p = 1.0F / 5040;
    p = p * r + 1.0F / 720;
    p = p * r + 1.0F / 120;
    p = p * r + 1.0F / 24;
    p = p * r + 1.0F / 6;
    p = p * r + 0.5F;
    p = (p * r) * r + r;
    // 2^n in two factors, so that neither leaves the normal range.
    const std::int32_t exponent =
        std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(RoundToInt);
    const std::int32_t half = exponent >> 1;
    const auto first = std::bit_cast<float>((half + 127) << 23);
    const auto second = std::bit_cast<float>((exponent - half + 127) << 23);
    x = (p + 1.0F) * first * second;
  }
}

}  // namespace ricci::cpu
