// Encoders of super-blocks: 256 values in sub-blocks whose scales are themselves whole numbers
// times a scale in f16. First every sub-block is fitted alone; then super-scales are looked for of
// which all of them are nearly multiples; then sub-scales, codes and super-scales are improved in
// turn while the error falls.
#include <array>
#include <cstdlib>

#include "quant/codec.h"
#include "quant/fit.h"

namespace ricci::quant {
namespace {

constexpr std::size_t MostSubs = 16;
constexpr int MostRounds = 4;

struct Super {
  std::size_t subs;
  CodeRange codes;
  CodeRange scales;  // of the sub-scales

  [[nodiscard]] std::size_t length() const { return 256 / subs; }
  [[nodiscard]] Weighted sub(const Weighted& v, std::size_t j) const {
    return v.part(j * length(), length());
  }
};

using PerSub = std::array<double, MostSubs>;

double total_weight(const Weighted& v) {
  double sum = 0;
  for (const float w : v.weights) sum += w;
  return sum;
}

// The unit u for which wanted_j ≈ u · a whole number in the range, with the weights: the largest of
// them is made each of the upper whole numbers in turn. Two are given, the better first; a second
// start often ends lower.
std::array<double, 2> best_units(const PerSub& wanted, const PerSub& weight, const Super& shape) {
  double largest = 0;
  for (std::size_t j = 0; j < shape.subs; ++j) {
    if (std::fabs(wanted[j]) > std::fabs(largest)) largest = wanted[j];
  }
  if (largest == 0) return {0, 0};
  std::array<double, 2> best{};
  std::array<double, 2> best_error;
  best_error.fill(std::numeric_limits<double>::infinity());
  for (int top = shape.scales.lo; top <= shape.scales.hi; ++top) {
    const int most = top < 0 ? -shape.scales.lo : shape.scales.hi;
    if (2 * std::abs(top) < most) continue;
    double unit = largest / top;
    double xn = 0;
    double nn = 0;
    for (std::size_t j = 0; j < shape.subs; ++j) {
      const double n = nearest_code(wanted[j], 1 / unit, shape.scales);
      xn += weight[j] * wanted[j] * n;
      nn += weight[j] * n * n;
    }
    if (nn > 0) unit = xn / nn;
    double error = 0;
    for (std::size_t j = 0; j < shape.subs; ++j) {
      const double off = wanted[j] - unit * nearest_code(wanted[j], inverse_of(unit), shape.scales);
      error += weight[j] * off * off;
    }
    if (error < best_error[0]) {
      best = {unit, best[0]};
      best_error = {error, best_error[0]};
    } else if (error < best_error[1]) {
      best[1] = unit;
      best_error[1] = error;
    }
  }
  return best;
}

// ---- value = d·scale·code -------------------------------------------------------------------

struct SymmetricFit {
  Float16 d;
  PerSub scale{};
  double error = std::numeric_limits<double>::infinity();
};

// Sub-scales for a super-scale: the nearest to what is wanted and those beside it.
SymmetricFit with_scales(const Weighted& v, const Super& shape, Float16 d, const PerSub& wanted) {
  SymmetricFit fit;
  fit.d = d;
  fit.error = 0;
  const auto unit = static_cast<double>(d);
  for (std::size_t j = 0; j < shape.subs; ++j) {
    const double middle = nearest_code(wanted[j], inverse_of(unit), shape.scales);
    Least<double> best;
    for (const double n : {middle, middle - 1, middle + 1}) {
      if (n < shape.scales.lo || n > shape.scales.hi) continue;
      best.offer(n, squared_error(shape.sub(v, j), {unit * n, 0}, shape.codes));
    }
    fit.scale[j] = best.best;
    fit.error += best.error;
  }
  return fit;
}

// The super-scale for the sub-scales and the codes they give.
double refitted_scale(const Weighted& v, const Super& shape, const SymmetricFit& fit) {
  double xn = 0;
  double nn = 0;
  for (std::size_t j = 0; j < shape.subs; ++j) {
    const Weighted sub = shape.sub(v, j);
    const double inverse = inverse_of(static_cast<double>(fit.d) * fit.scale[j]);
    for (std::size_t i = 0; i < sub.values.size(); ++i) {
      const double n = fit.scale[j] * nearest_code(sub.values[i], inverse, shape.codes);
      xn += sub.weights[i] * sub.values[i] * n;
      nn += sub.weights[i] * n * n;
    }
  }
  return nn > 0 ? xn / nn : 0;
}

SymmetricBlock symmetric_block(const Weighted& v, const Super& shape) {
  PerSub wanted{};
  PerSub weight{};
  for (std::size_t j = 0; j < shape.subs; ++j) {
    wanted[j] = best_scale(shape.sub(v, j), shape.codes);
    weight[j] = total_weight(shape.sub(v, j));
  }
  SymmetricFit best;
  for (const double unit : best_units(wanted, weight, shape)) {
    PerSub near = wanted;
    Float16 d = finite_f16(unit);
    for (int round = 0; round < MostRounds; ++round) {
      const SymmetricFit fit = with_scales(v, shape, d, near);
      if (!(fit.error < best.error) && round > 0) break;
      if (fit.error < best.error) best = fit;
      d = finite_f16(refitted_scale(v, shape, fit));
      for (std::size_t j = 0; j < shape.subs; ++j) {
        near[j] = static_cast<double>(d) * fit.scale[j];
      }
    }
  }
  SymmetricBlock b;
  b.d = best.d;
  for (std::size_t j = 0; j < shape.subs; ++j) {
    b.scale[j] = static_cast<std::int8_t>(best.scale[j]);
    const Line line = {static_cast<double>(b.d) * best.scale[j], 0};
    set_codes(shape.sub(v, j), line, shape.codes, b.code.data() + j * shape.length());
  }
  return b;
}

// ---- value = d·scale·code - dmin·min --------------------------------------------------------

struct AffineFit {
  Float16 d;
  Float16 dmin;
  PerSub scale{};
  PerSub min{};
  double error = std::numeric_limits<double>::infinity();

  [[nodiscard]] Line line(std::size_t j) const {
    return {static_cast<double>(d) * scale[j], -static_cast<double>(dmin) * min[j]};
  }
};

struct Wanted {
  PerSub scale{};
  PerSub min{};
};

AffineFit with_scales(const Weighted& v, const Super& shape, Float16 d, Float16 dmin,
                      const Wanted& wanted) {
  struct Pair {
    double scale;
    double min;
  };
  AffineFit fit{.d = d, .dmin = dmin, .error = 0};
  const auto unit = static_cast<double>(d);
  const auto min_unit = static_cast<double>(dmin);
  for (std::size_t j = 0; j < shape.subs; ++j) {
    const double scale = nearest_code(wanted.scale[j], inverse_of(unit), shape.scales);
    const double min = nearest_code(wanted.min[j], inverse_of(min_unit), shape.scales);
    Least<Pair> best;
    for (const double s : {scale, scale - 1, scale + 1}) {
      for (const double m : {min, min - 1, min + 1}) {
        if (std::fmin(s, m) < shape.scales.lo || std::fmax(s, m) > shape.scales.hi) continue;
        best.offer({s, m}, squared_error(shape.sub(v, j), {unit * s, -min_unit * m}, shape.codes));
      }
    }
    fit.scale[j] = best.best.scale;
    fit.min[j] = best.best.min;
    fit.error += best.error;
  }
  return fit;
}

// With a = scale·code and b = min of every value: the d and dmin of least Σ w (x - d a + dmin b)².
struct Units {
  double d;
  double dmin;
};
Units refitted_units(const Weighted& v, const Super& shape, const AffineFit& fit) {
  double aa = 0;
  double ab = 0;
  double bb = 0;
  double xa = 0;
  double xb = 0;
  for (std::size_t j = 0; j < shape.subs; ++j) {
    const Weighted sub = shape.sub(v, j);
    const Line line = fit.line(j);
    const double inverse = inverse_of(line.scale);
    for (std::size_t i = 0; i < sub.values.size(); ++i) {
      const double x = sub.values[i];
      const double w = sub.weights[i];
      const double a = fit.scale[j] * nearest_code(x - line.offset, inverse, shape.codes);
      aa += w * a * a;
      ab += w * a * fit.min[j];
      bb += w * fit.min[j] * fit.min[j];
      xa += w * x * a;
      xb += w * x * fit.min[j];
    }
  }
  const double det = aa * bb - ab * ab;
  if (det > 1e-12 * aa * bb) return {(xa * bb - xb * ab) / det, (xa * ab - xb * aa) / det};
  return {aa > 0 ? xa / aa : 0, 0};
}

void improve(const Weighted& v, const Super& shape, Wanted near, Units units, AffineFit& best) {
  for (int round = 0; round < MostRounds; ++round) {
    const AffineFit fit = with_scales(v, shape, finite_f16(units.d), finite_f16(units.dmin), near);
    if (!(fit.error < best.error) && round > 0) return;
    if (fit.error < best.error) best = fit;
    units = refitted_units(v, shape, fit);
    for (std::size_t j = 0; j < shape.subs; ++j) {
      near.scale[j] = units.d * fit.scale[j];
      near.min[j] = units.dmin * fit.min[j];
    }
  }
}

// Offsets of all sub-blocks have one sign.
void fit_affine(const Weighted& v, const Super& shape, OffsetSign sign, AffineFit& best) {
  Wanted wanted;
  PerSub weight{};
  for (std::size_t j = 0; j < shape.subs; ++j) {
    const Line line = best_line(shape.sub(v, j), shape.codes.hi, sign);
    wanted.scale[j] = line.scale;
    wanted.min[j] = -line.offset;
    weight[j] = total_weight(shape.sub(v, j));
  }
  const auto scales = best_units(wanted.scale, weight, shape);
  const auto mins = best_units(wanted.min, weight, shape);
  improve(v, shape, wanted, {scales[0], mins[0]}, best);
  improve(v, shape, wanted, {scales[1], mins[1]}, best);
}

AffineBlock affine_block(const Weighted& v, const Super& shape) {
  AffineFit best;
  fit_affine(v, shape, OffsetSign::NotPositive, best);
  bool above = false;
  for (std::size_t j = 0; j < shape.subs; ++j) {
    above = above || std::ranges::min(shape.sub(v, j).values) > 0;
  }
  if (above) fit_affine(v, shape, OffsetSign::NotNegative, best);
  AffineBlock b;
  b.d = best.d;
  b.dmin = best.dmin;
  for (std::size_t j = 0; j < shape.subs; ++j) {
    b.scale[j] = static_cast<std::uint8_t>(best.scale[j]);
    b.min[j] = static_cast<std::uint8_t>(best.min[j]);
    set_codes(shape.sub(v, j), best.line(j), shape.codes, b.code.data() + j * shape.length());
  }
  return b;
}

}  // namespace

void encode_q2_k(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, 256);
  pack_q2_k(affine_block(v, {16, {0, 3}, {0, 15}}), block);
}
void encode_q3_k(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, 256);
  pack_q3_k(symmetric_block(v, {16, {-4, 3}, {-32, 31}}), block);
}
void encode_q4_k(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, 256);
  pack_q4_k(affine_block(v, {8, {0, 15}, {0, 63}}), block);
}
void encode_q5_k(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, 256);
  pack_q5_k(affine_block(v, {8, {0, 31}, {0, 63}}), block);
}
void encode_q6_k(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, 256);
  pack_q6_k(symmetric_block(v, {16, {-32, 31}, {-128, 127}}), block);
}

}  // namespace ricci::quant
