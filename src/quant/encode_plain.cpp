// Encoders of formats with one scale, or a scale and an offset, for a block.
#include <algorithm>
#include <numeric>

#include "quant/codec.h"
#include "quant/fit.h"

namespace ricci::quant {
namespace {

PlainBlock scaled_block(const Weighted& v, const CodeRange& codes) {
  Least<Float16> d;
  const auto offer = [&](Float16 candidate) {
    d.offer(candidate, squared_error(v, {static_cast<double>(candidate), 0}, codes));
  };
  const Float16 fitted = finite_f16(best_scale(v, codes));
  for (const int beside : {0, -1, 1}) offer(f16_beside(fitted, beside));
  const double largest = of_largest_magnitude(v.values);
  offer(finite_f16(largest / codes.lo));
  offer(finite_f16(largest / codes.hi));
  PlainBlock b;
  b.d = d.best;
  set_codes(v, {static_cast<double>(b.d), 0}, codes, b.code.data());
  return b;
}

// The mean distance to the line without its offset: the best offset for the codes it gives.
double best_offset(const Weighted& v, const Line& line, const CodeRange& codes) {
  const double inverse = inverse_of(line.scale);
  double sum = 0;
  double total = 0;
  for (std::size_t i = 0; i < v.values.size(); ++i) {
    const double q = nearest_code(v.values[i] - line.offset, inverse, codes);
    sum += v.weights[i] * (v.values[i] - line.scale * q);
    total += v.weights[i];
  }
  return sum / total;
}

PlainBlock shifted_block(const Weighted& v, const CodeRange& codes) {
  struct Rounded {
    Float16 d;
    Float16 m;
    [[nodiscard]] Line line() const { return {static_cast<double>(d), static_cast<double>(m)}; }
  };
  Least<Rounded> fit;
  const auto offer = [&](const Rounded& r) { fit.offer(r, squared_error(v, r.line(), codes)); };
  const Line line = best_line(v, codes.hi);
  for (const int beside : {0, -1, 1, -2, 2}) {
    const Float16 d = f16_beside(finite_f16(line.scale), beside);
    const Line rounded = {static_cast<double>(d), line.offset};
    const Float16 m = finite_f16(best_offset(v, rounded, codes));
    for (const int off : {0, -1, 1}) offer({d, f16_beside(m, off)});
  }
  const auto [least, most] = std::ranges::minmax(v.values);
  offer({finite_f16((static_cast<double>(most) - least) / codes.hi), finite_f16(least)});
  PlainBlock b;
  b.d = fit.best.d;
  b.extra = fit.best.m;
  set_codes(v, fit.best.line(), codes, b.code.data());
  return b;
}

}  // namespace

void encode_q4_0(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, PlainBlock::Length);
  pack_plain(scaled_block(v, {-8, 7}), LayoutQ4_0, block);
}
void encode_q4_1(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, PlainBlock::Length);
  pack_plain(shifted_block(v, {0, 15}), LayoutQ4_1, block);
}
void encode_q5_0(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, PlainBlock::Length);
  pack_plain(scaled_block(v, {-16, 15}), LayoutQ5_0, block);
}
void encode_q5_1(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, PlainBlock::Length);
  pack_plain(shifted_block(v, {0, 31}), LayoutQ5_1, block);
}
// The code -128 is left out: kernels that multiply magnitudes of bytes need not fear it.
void encode_q8_0(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, PlainBlock::Length);
  pack_plain(scaled_block(v, {-127, 127}), LayoutQ8_0, block);
}
void encode_q8_1(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, PlainBlock::Length);
  PlainBlock b = scaled_block(v, {-127, 127});
  b.extra = finite_f16(static_cast<double>(b.d) * std::accumulate(b.code.begin(), b.code.end(), 0));
  pack_plain(b, LayoutQ8_1, block);
}

void encode_q8_k(const float* values, const float* importance, std::byte* block) {
  const Weighted v = weighted(values, importance, WideBlock::Length);
  const CodeRange codes = {-127, 127};
  Least<float> d;
  const double largest = std::fabs(of_largest_magnitude(v.values));
  for (const double candidate : {best_scale(v, codes), largest / codes.hi}) {
    const auto rounded = static_cast<float>(candidate);
    d.offer(rounded, squared_error(v, {rounded, 0}, codes));
  }
  WideBlock b;
  b.d = d.best;
  set_codes(v, {b.d, 0}, codes, b.code.data());
  for (std::size_t i = 0; i < WideBlock::Length; ++i) {
    b.sum[i / 16] = static_cast<std::int16_t>(b.sum[i / 16] + b.code[i]);
  }
  pack_q8_k(b, block);
}

}  // namespace ricci::quant
