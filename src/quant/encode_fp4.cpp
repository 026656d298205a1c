// Encoders of FP4 under scales of 8 bits, and of FP8.
#include <algorithm>

#include "ricci/quant/tiny_float.h"

#include "quant/codec.h"
#include "quant/fp4_fit.h"

namespace ricci::quant {
namespace {

constexpr double LargestFp4 = 6;

std::uint8_t fp4_code(double value, double inverse) {
  return to_fp4(static_cast<float>(value * inverse));
}

}  // namespace

double fp4_error(const Weighted& v, double scale) {
  const double inverse = inverse_of(scale);
  double sum = 0;
  for (std::size_t i = 0; i < v.values.size(); ++i) {
    const double off = v.values[i] - scale * fp4_value(fp4_code(v.values[i], inverse));
    sum += v.weights[i] * off * off;
  }
  return sum;
}

void set_fp4_codes(const Weighted& v, double scale, std::uint8_t* codes) {
  const double inverse = inverse_of(scale);
  for (std::size_t i = 0; i < v.values.size(); ++i) codes[i] = fp4_code(v.values[i], inverse);
}

// Scales that bring the largest magnitude to a little below FP4's largest value, up to cutting it
// by half: codes of E4M3 grow with the scale, eight of them to a factor of two.
std::uint8_t best_e4m3_scale(const Weighted& v, double unit) {
  constexpr int Largest = 0x7E;
  const double covering = std::fabs(of_largest_magnitude(v.values)) / LargestFp4 * inverse_of(unit);
  const int usual = to_fp8_e4m3(static_cast<float>(covering));
  Least<int> scale;
  scale.offer(usual, fp4_error(v, unit * fp8_e4m3_value(static_cast<std::uint8_t>(usual))));
  for (int code = std::max(usual - 8, 0); code <= std::min(usual + 5, Largest); ++code) {
    scale.offer(code, fp4_error(v, unit * fp8_e4m3_value(static_cast<std::uint8_t>(code))));
  }
  return static_cast<std::uint8_t>(scale.best);
}

// The power of two that brings the largest magnitude to FP4's largest power, and those beside it.
void encode_mxfp4(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, Mxfp4Fields::Length);
  int exponent = 0;
  std::frexp(of_largest_magnitude(v.values), &exponent);  // 4 is the largest power: two above 1
  const int usual = exponent - 1 - 2 + 127;
  constexpr int Largest = 252;  // 6 times the next would not fit in f32
  Least<std::uint8_t> scale;
  for (const int e : {usual, usual + 1, usual - 1}) {
    const auto code = static_cast<std::uint8_t>(std::clamp(e, 0, Largest));
    scale.offer(code, fp4_error(v, e8m0_value(code)));
  }
  Mxfp4Fields b;
  b.scale[0] = scale.best;
  set_fp4_codes(v, e8m0_value(scale.best), b.code.data());
  pack_fp4(b, block);
}

void encode_nvfp4(const float* values, const float* importance, std::byte* block) {
  Nvfp4Fields b;
  for (std::size_t g = 0; g < Nvfp4Fields::Groups; ++g) {
    const std::size_t first = g * Nvfp4Fields::GroupLength;
    const Weighted v = weighted(values + first, importance + first, Nvfp4Fields::GroupLength);
    b.scale[g] = best_e4m3_scale(v, 1);
    set_fp4_codes(v, fp8_e4m3_value(b.scale[g]), b.code.data() + first);
  }
  pack_fp4(b, block);
}

void encode_fp8_e4m3(const float* values, const float* /*importance*/, std::byte* block) {
  *block = static_cast<std::byte>(to_fp8_e4m3(*values));
}
void encode_fp8_e5m2(const float* values, const float* /*importance*/, std::byte* block) {
  *block = static_cast<std::byte>(to_fp8_e5m2(*values));
}

}  // namespace ricci::quant
