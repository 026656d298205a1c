// Least squares for grids of few codes: which scale, or which line, the values of a block are
// nearest to. All in f64, so that squares of any f32 are finite.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "ricci/type/small_float.h"

namespace ricci::quant {

/// Values and what each counts.
struct Weighted {
  std::span<const float> values;
  std::span<const float> weights;

  [[nodiscard]] Weighted part(std::size_t first, std::size_t count) const {
    return {values.subspan(first, count), weights.subspan(first, count)};
  }
};

[[nodiscard]] inline Weighted weighted(const float* values, const float* weights,
                                       std::size_t count) {
  return {{values, count}, {weights, count}};
}

[[nodiscard]] inline double of_largest_magnitude(std::span<const float> values) {
  return *std::ranges::max_element(values, {}, [](float x) { return std::fabs(x); });
}

/// Keeps the candidate of least error, the first of several.
template <class T>
struct Least {
  T best{};
  double error = std::numeric_limits<double>::infinity();

  void offer(const T& candidate, double with_error) {
    if (with_error < error) {
      best = candidate;
      error = with_error;
    }
  }
};

/// Codes lo, lo + 1, …, hi.
struct CodeRange {
  int lo;
  int hi;
};

/// value ≈ scale·code + offset
struct Line {
  double scale = 0;
  double offset = 0;
};

/// The code whose point on the line is nearest, as a whole number in f64; 0, or what is nearest to
/// it, on a line without slope. `inverse` is 1 / scale, or 0 when the scale is.
[[nodiscard]] inline double nearest_code(double value, double inverse, const CodeRange& codes) {
  // Adding and taking away 1.5 * 2^52 rounds to nearest even, with plain instructions.
  constexpr double Rounder = 6755399441055744.0;
  const double at = std::min<double>(std::max<double>(value * inverse, codes.lo), codes.hi);
  return at + Rounder - Rounder;
}

[[nodiscard]] inline double inverse_of(double scale) { return scale == 0 ? 0 : 1 / scale; }

template <class Code>
void set_codes(const Weighted& v, const Line& line, const CodeRange& codes, Code* out) {
  const double inverse = inverse_of(line.scale);
  for (std::size_t i = 0; i < v.values.size(); ++i) {
    out[i] = static_cast<Code>(nearest_code(v.values[i] - line.offset, inverse, codes));
  }
}

/// Σ w (x - (scale·q + offset))² with the nearest codes.
[[nodiscard]] double squared_error(const Weighted& v, const Line& line, const CodeRange& codes);

/// The scale, of either sign, that makes Σ w (x - scale·q)² least. Exact within a window around the
/// scale that covers the largest magnitude, wide for few codes and narrow for many: all sets of
/// codes that a scale in it gives are tried, each with its best scale.
[[nodiscard]] double best_scale(const Weighted& v, const CodeRange& codes);

enum class OffsetSign { Any, NotPositive, NotNegative };

/// The line with a scale above or at 0, and an offset of the sign, for codes 0 to `hi`: least
/// squares from several lines, each followed while it improves.
[[nodiscard]] Line best_line(const Weighted& v, int hi, OffsetSign sign = OffsetSign::Any);

/// Rounded to f16, held within its finite values.
[[nodiscard]] Float16 finite_f16(double v);
/// The f16 a few steps of its last bit away, in magnitude; itself at the ends.
[[nodiscard]] Float16 f16_beside(Float16 v, int steps);

}  // namespace ricci::quant
