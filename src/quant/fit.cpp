#include "quant/fit.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace ricci::quant {
namespace {

constexpr double LargestF16 = 65504;

// Sums are kept several at a time: they do not wait for each other, and fit in vectors.
constexpr std::size_t Lanes = 4;

template <class F>
void for_each_in_lanes(std::size_t count, F&& f) {
  std::size_t i = 0;
  for (; i + Lanes <= count; i += Lanes) {
    for (std::size_t lane = 0; lane < Lanes; ++lane) f(i + lane, lane);
  }
  for (; i < count; ++i) f(i, 0);
}

double total(const std::array<double, Lanes>& sums) {
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

struct Best {
  double gain = 0;  // Σ w x² less the error
  double scale = 0;
};

// Where the code of one value changes, and by how much that changes Σ w x q and Σ w q².
struct Step {
  double at = 0;
  double xq = 0;
  double qq = 0;
};

// Which part of the scale that covers the largest magnitude is worth a look, by how many codes
// there are on a side.
struct Window {
  int codes;
  double from;
  double to;
};
constexpr std::array Windows = {Window{1, 0.2, 4.0},   Window{4, 0.4, 2.5},
                                Window{8, 0.6, 1.8},   Window{16, 0.75, 1.45},
                                Window{32, 0.85, 1.2}, Window{1 << 20, 0.95, 1.03}};

// With t the inverse of the scale, codes change one at a time as t grows. In between, the best
// scale is Σ w x q / Σ w q², which takes (Σ w x q)² / Σ w q² off the error.
void sweep(const Weighted& v, double sign, const CodeRange& codes, double largest,
           std::vector<Step>& steps, Best& best) {
  const int top = std::max(codes.hi, -codes.lo);
  const auto* window =
      std::ranges::find_if(Windows, [&](const Window& w) { return top <= w.codes; });
  const double from = window->from * top / largest;
  const double to = window->to * top / largest;
  double xq = 0;
  double qq = 0;
  steps.clear();
  for (std::size_t i = 0; i < v.values.size(); ++i) {
    const double x = sign * v.values[i];
    const double w = v.weights[i];
    if (x == 0 || w == 0) continue;
    const double magnitude = std::fabs(x);
    const double most = x > 0 ? codes.hi : -codes.lo;
    double q = std::fabs(nearest_code(x, from, codes));
    xq += w * magnitude * q;
    qq += w * q * q;
    for (; q < most; q += 1) {
      const double at = (q + 0.5) / magnitude;
      if (at > to) break;
      steps.push_back({at, w * magnitude, w * (2 * q + 1)});
    }
  }
  std::ranges::sort(steps, {}, &Step::at);
  const auto consider = [&] {
    if (qq > 0 && xq * xq > best.gain * qq) best = {xq * xq / qq, sign * xq / qq};
  };
  consider();
  for (const Step& s : steps) {
    xq += s.xq;
    qq += s.qq;
    consider();
  }
}

// Σ w, Σ w x, Σ w x² of all values, and with codes Σ w q, Σ w q², Σ w x q.
struct Sums {
  double w = 0;
  double x = 0;
  double xx = 0;
  double q = 0;
  double qq = 0;
  double xq = 0;
};

void add_codes(const Weighted& v, const Line& line, const CodeRange& codes, Sums& sums) {
  const double inverse = inverse_of(line.scale);
  std::array<double, Lanes> sum_q{};
  std::array<double, Lanes> sum_qq{};
  std::array<double, Lanes> sum_xq{};
  const auto add = [&](std::size_t i, std::size_t lane) {
    const double x = v.values[i];
    const double q = nearest_code(x - line.offset, inverse, codes);
    const double wq = v.weights[i] * q;
    sum_q[lane] += wq;
    sum_qq[lane] += wq * q;
    sum_xq[lane] += wq * x;
  };
  for_each_in_lanes(v.values.size(), add);
  sums.q = total(sum_q);
  sums.qq = total(sum_qq);
  sums.xq = total(sum_xq);
}

// Where the search for a line starts: with so many more steps in the range of the values than there
// are codes. Fewer leave the last codes unused, as in values that were encoded before; more cut off
// the ends.
constexpr std::array FewCodes = {-1.0, -0.5, -0.25, 0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3};
constexpr std::array ManyCodes = {-4.0, -3.0, -2.0, -1.0, -0.5, 0.0, 0.25,
                                  0.5,  0.75, 1.0,  1.5,  2.0,  2.5, 3.0};

bool allowed(double offset, OffsetSign sign) {
  return sign == OffsetSign::Any || (sign == OffsetSign::NotPositive ? offset <= 0 : offset >= 0);
}

// The best line for given codes.
Line least_squares(const Sums& s, OffsetSign sign) {
  const double det = s.w * s.qq - s.q * s.q;
  Line line = {0, s.x / s.w};
  if (det > 0) {
    line.scale = (s.w * s.xq - s.x * s.q) / det;
    line.offset = (s.x - line.scale * s.q) / s.w;
  }
  if (!allowed(line.offset, sign)) line = {s.qq > 0 ? s.xq / s.qq : 0, 0};
  return line;
}

double error_of(const Sums& s, const Line& l) {
  return s.xx + l.scale * (l.scale * s.qq + 2 * l.offset * s.q - 2 * s.xq) +
         l.offset * (l.offset * s.w - 2 * s.x);
}

}  // namespace

double squared_error(const Weighted& v, const Line& line, const CodeRange& codes) {
  const double inverse = inverse_of(line.scale);
  std::array<double, Lanes> sums{};
  for_each_in_lanes(v.values.size(), [&](std::size_t i, std::size_t lane) {
    const double x = v.values[i] - line.offset;
    const double off = x - line.scale * nearest_code(x, inverse, codes);
    sums[lane] += v.weights[i] * off * off;
  });
  return total(sums);
}

double best_scale(const Weighted& v, const CodeRange& codes) {
  double largest = 0;
  for (std::size_t i = 0; i < v.values.size(); ++i) {
    if (v.weights[i] > 0) largest = std::max<double>(largest, std::fabs(v.values[i]));
  }
  if (largest == 0) return 0;
  std::vector<Step> steps;
  Best best;
  sweep(v, 1, codes, largest, steps, best);
  if (codes.lo != -codes.hi) sweep(v, -1, codes, largest, steps, best);
  return best.scale;
}

Line best_line(const Weighted& v, int hi, OffsetSign sign) {
  Sums sums;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (std::size_t i = 0; i < v.values.size(); ++i) {
    const double x = v.values[i];
    const double w = v.weights[i];
    if (w == 0) continue;
    least = std::min(least, x);
    most = std::max(most, x);
    sums.w += w;
    sums.x += w * x;
    sums.xx += w * x * x;
  }
  if (sums.w == 0) return {};
  if (!allowed(least, sign)) least = 0;
  const double range = most - least;
  if (!(range > 0)) return {0, allowed(most, sign) ? most : 0};

  Line best = {0, allowed(sums.x / sums.w, sign) ? sums.x / sums.w : 0};
  double best_error = error_of(sums, best);
  const CodeRange codes = {0, hi};
  const std::span<const double> starts = hi < 8 ? std::span<const double>(FewCodes) : ManyCodes;
  for (std::size_t start = 0; start < 2 * starts.size(); ++start) {
    const double more = starts[start / 2];
    Line line = {range / (hi + more), least};
    if (start % 2 == 1) {
      if (more <= 0) continue;
      line.offset += (range - hi * line.scale) / 2;  // both ends instead of one
      if (!allowed(line.offset, sign)) continue;
    }
    double previous = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 6; ++round) {
      add_codes(v, line, codes, sums);
      line = least_squares(sums, sign);
      const double error = error_of(sums, line);
      if (error < best_error) {
        best_error = error;
        best = line;
      }
      if (!(line.scale > 0) || error >= previous) break;
      previous = error;
    }
  }
  return best;
}

Float16 finite_f16(double v) { return Float16(std::clamp(v, -LargestF16, LargestF16)); }

Float16 f16_beside(Float16 v, int steps) {
  constexpr int LargestBits = 0x7BFF;
  const int magnitude = std::clamp((v.bits & 0x7FFF) + steps, 0, LargestBits);
  v.bits = static_cast<std::uint16_t>((v.bits & 0x8000) | magnitude);
  return v;
}

}  // namespace ricci::quant
