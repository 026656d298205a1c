// Numbers made of the words of a Philox stream: what random ops draw, one element at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "ricci/type/dtype.h"

#include "support/philox.h"

namespace ricci::rule {

/// The i-th number in [0, 1): 53 bits for f64, 24 for all others.
[[nodiscard]] inline double draw_unit(const PhiloxStream& s, bool wide, std::uint64_t i) {
  return wide ? s.uniform53(2 * i) : s.uniform24(i);
}

/// f16 and bf16 are the f32 draw, rounded.
[[nodiscard]] inline double as_drawn(DType dtype, double v) {
  return dtype == DType::F64 ? v : static_cast<double>(static_cast<float>(v));
}

/// low + u·(high - low)
[[nodiscard]] inline double draw_uniform(const PhiloxStream& s, DType dtype, std::uint64_t i,
                                         double low, double high) {
  return as_drawn(dtype, low + draw_unit(s, dtype == DType::F64, i) * (high - low));
}

/// mean + scale·√(-2 ln u1)·cos(2π u2)
[[nodiscard]] inline double draw_normal(const PhiloxStream& s, DType dtype, std::uint64_t i,
                                        double mean, double scale) {
  const bool wide = dtype == DType::F64;
  // ln 0 is not a number one can draw.
  const double least = wide ? std::numeric_limits<double>::min()
                            : static_cast<double>(std::numeric_limits<float>::min());
  const double u1 = std::max(draw_unit(s, wide, 2 * i), least);
  const double u2 = draw_unit(s, wide, 2 * i + 1);
  return as_drawn(
      dtype, mean + scale * std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2));
}

}  // namespace ricci::rule
