#include "support/published_encoders.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ricci/quant/tiny_float.h"

#include "quant/codec.h"
#include "quant/layout.h"

namespace ricci::testing {
namespace {

using quant::Format;
using Values = std::span<const float>;

int rounded(float v) { return static_cast<int>(std::nearbyint(v)); }
float f16(float v) { return static_cast<float>(static_cast<double>(Float16(v))); }
float inverse(float v) { return v == 0 ? 0 : 1 / v; }

float of_largest(Values x) {
  return *std::ranges::max_element(x, {}, [](float v) { return std::fabs(v); });
}

// d = largest / -n, codes x/d rounded, in [-n, n).
quant::PlainBlock symmetric(Values x, int n) {
  const float d = of_largest(x) / static_cast<float>(-n);
  quant::PlainBlock b;
  b.d = Float16(d);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int code = static_cast<int>(x[i] * inverse(d) + static_cast<float>(n) + 0.5F);
    b.code[i] = static_cast<std::int8_t>(std::min(code, 2 * n - 1) - n);
  }
  return b;
}

// d = (max - min) / n, m = min.
quant::PlainBlock affine(Values x, int n) {
  const auto [least, most] = std::ranges::minmax(x);
  const float d = (most - least) / static_cast<float>(n);
  quant::PlainBlock b;
  b.d = Float16(d);
  b.extra = Float16(least);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int code = static_cast<int>((x[i] - least) * inverse(d) + 0.5F);
    b.code[i] = static_cast<std::int8_t>(std::min(code, n));
  }
  return b;
}

quant::PlainBlock bytes_of_32(Values x) {
  const float d = std::fabs(of_largest(x)) / 127;
  quant::PlainBlock b;
  b.d = Float16(d);
  int sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    b.code[i] = static_cast<std::int8_t>(std::round(x[i] * inverse(d)));
    sum += b.code[i];
  }
  b.extra = Float16(d * static_cast<float>(sum));
  return b;
}

quant::WideBlock bytes_of_256(Values x) {
  const float largest = of_largest(x);
  const float inverse_d = largest == 0 ? 0 : -127 / largest;
  quant::WideBlock b;
  b.d = inverse(inverse_d);
  for (std::size_t i = 0; i < x.size(); ++i) {
    b.code[i] = static_cast<std::int8_t>(std::min(127, rounded(inverse_d * x[i])));
    b.sum[i / 16] = static_cast<std::int16_t>(b.sum[i / 16] + b.code[i]);
  }
  return b;
}

// A scale and a minimum of at most 0: the covering line, then lines with a little fewer or more
// steps, each refitted once by weighted least squares; the best stays.
struct SubLine {
  float scale = 0;
  float min = 0;  // to be taken off
};
struct LineSearch {
  int codes;
  float first;
  int steps;
  bool absolute;  // whether errors are compared by magnitude
};
SubLine searched_line(Values x, Values w, const LineSearch& s) {
  float least = std::min(0.0F, std::ranges::min(x));
  const float most = std::ranges::max(x);
  if (most == least) return {0, -least};
  const auto code_of = [&](float value, float inverse_scale, float min) {
    return std::clamp(rounded(inverse_scale * (value - min)), 0, s.codes);
  };
  const auto error_of = [&](const std::vector<int>& codes, float scale, float min) {
    float sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float off = scale * static_cast<float>(codes[i]) + min - x[i];
      sum += w[i] * (s.absolute ? std::fabs(off) : off * off);
    }
    return sum;
  };
  std::vector<int> codes(x.size());
  SubLine best = {(most - least) / static_cast<float>(s.codes), least};
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = code_of(x[i], 1 / best.scale, best.min);
  float best_error = error_of(codes, best.scale, best.min);
  for (int step = 0; step <= s.steps; ++step) {
    const float inverse_scale =
        (s.first + 0.1F * static_cast<float>(step) + static_cast<float>(s.codes)) /
        (most - best.min);
    float sw = 0;
    float sx = 0;
    float sl = 0;
    float sll = 0;
    float sxl = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      codes[i] = code_of(x[i], inverse_scale, best.min);
      const auto l = static_cast<float>(codes[i]);
      sw += w[i];
      sx += w[i] * x[i];
      sl += w[i] * l;
      sll += w[i] * l * l;
      sxl += w[i] * x[i] * l;
    }
    const float det = sw * sll - sl * sl;
    if (det <= 0) continue;
    SubLine line = {(sw * sxl - sx * sl) / det, (sll * sx - sl * sxl) / det};
    if (line.min > 0) line = {sxl / sll, 0};
    const float error = error_of(codes, line.scale, line.min);
    if (error < best_error) {
      best_error = error;
      best = line;
    }
  }
  return {best.scale, -best.min};
}

quant::AffineBlock affine_super(Values x, Values w, std::size_t length, const LineSearch& search,
                                int top) {
  const std::size_t subs = 256 / length;
  std::array<SubLine, 16> lines;
  float scale = 0;
  float min = 0;
  for (std::size_t j = 0; j < subs; ++j) {
    lines[j] = searched_line(x.subspan(j * length, length), w.subspan(j * length, length), search);
    scale = std::max(scale, lines[j].scale);
    min = std::max(min, lines[j].min);
  }
  quant::AffineBlock b;
  const auto most = static_cast<float>(top);
  b.d = Float16(scale / most);
  b.dmin = Float16(min / most);
  for (std::size_t j = 0; j < subs; ++j) {
    b.scale[j] =
        static_cast<std::uint8_t>(std::min(top, rounded(most * inverse(scale) * lines[j].scale)));
    b.min[j] =
        static_cast<std::uint8_t>(std::min(top, rounded(most * inverse(min) * lines[j].min)));
    const float d = f16(scale / most) * static_cast<float>(b.scale[j]);
    const float m = f16(min / most) * static_cast<float>(b.min[j]);
    for (std::size_t i = j * length; i < (j + 1) * length; ++i) {
      b.code[i] =
          d == 0 ? std::uint8_t{0}
                 : static_cast<std::uint8_t>(std::clamp(rounded((x[i] + m) / d), 0, search.codes));
    }
  }
  return b;
}

// The covering scale refined: Q6_K tries nearby ones, Q3_K moves single codes; both weigh by x².
float searched_scale(Values x, int n, bool move_codes) {
  const float largest = of_largest(x);
  if (largest == 0) return 0;
  const auto code_of = [&](float v) { return std::clamp(rounded(v), -n, n - 1); };
  float sxl = 0;
  float sll = 0;
  std::vector<int> codes(x.size());
  const auto sum_up = [&](float inverse_scale) {
    sxl = sll = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      codes[i] = code_of(inverse_scale * x[i]);
      const auto l = static_cast<float>(codes[i]);
      sxl += x[i] * x[i] * x[i] * l;
      sll += x[i] * x[i] * l * l;
    }
  };
  sum_up(static_cast<float>(-n) / largest);
  if (!move_codes) {
    float scale = sll > 0 ? sxl / sll : 0;
    float best = scale * sxl;
    for (int step = -9; step <= 9; ++step) {
      if (step == 0) continue;
      sum_up(-(static_cast<float>(n) + 0.1F * static_cast<float>(step)) / largest);
      if (sll > 0 && sxl * sxl > best * sll) {
        scale = sxl / sll;
        best = scale * sxl;
      }
    }
    return scale;
  }
  for (int round = 0; round < 5; ++round) {
    bool changed = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float w = x[i] * x[i];
      const auto l = static_cast<float>(codes[i]);
      float other_xl = sxl - w * x[i] * l;
      if (other_xl <= 0) continue;
      float other_ll = sll - w * l * l;
      const int code = code_of(x[i] * other_ll / other_xl);
      if (code == codes[i]) continue;
      const auto c = static_cast<float>(code);
      other_xl += w * x[i] * c;
      other_ll += w * c * c;
      if (other_ll > 0 && other_xl * other_xl * sll > sxl * sxl * other_ll) {
        codes[i] = code;
        sxl = other_xl;
        sll = other_ll;
        changed = true;
      }
    }
    if (!changed) break;
  }
  return sll > 0 ? sxl / sll : 0;
}

quant::SymmetricBlock symmetric_super(Values x, int n, int top, bool move_codes) {
  std::array<float, 16> scales{};
  for (std::size_t j = 0; j < 16; ++j)
    scales[j] = searched_scale(x.subspan(16 * j, 16), n, move_codes);
  const float largest = of_largest(scales);
  quant::SymmetricBlock b;
  if (largest == 0) return b;
  const float inverse_d = static_cast<float>(-top) / largest;
  b.d = Float16(1 / inverse_d);
  for (std::size_t j = 0; j < 16; ++j) {
    b.scale[j] =
        static_cast<std::int8_t>(std::clamp(rounded(inverse_d * scales[j]), -top, top - 1));
    const float d = f16(1 / inverse_d) * static_cast<float>(b.scale[j]);
    for (std::size_t i = 16 * j; i < 16 * (j + 1); ++i) {
      b.code[i] = d == 0 ? std::int8_t{0}
                         : static_cast<std::int8_t>(std::clamp(rounded(x[i] / d), -n, n - 1));
    }
  }
  return b;
}

quant::Mxfp4Fields mxfp4(Values x) {
  quant::Mxfp4Fields b;
  const float largest = std::fabs(of_largest(x));
  const int e = largest == 0 ? 0 : static_cast<int>(std::floor(std::log2(largest))) - 2 + 127;
  b.scale[0] = static_cast<std::uint8_t>(std::clamp(e, 0, 254));
  for (std::size_t i = 0; i < x.size(); ++i) {
    b.code[i] = quant::to_fp4(x[i] / quant::e8m0_value(b.scale[0]));
  }
  return b;
}

quant::Nvfp4Fields nvfp4(Values x) {
  quant::Nvfp4Fields b;
  for (std::size_t g = 0; g < 4; ++g) {
    b.scale[g] = quant::to_fp8_e4m3(std::fabs(of_largest(x.subspan(16 * g, 16))) / 6);
    for (std::size_t i = 16 * g; i < 16 * (g + 1); ++i) {
      b.code[i] = quant::to_fp4(x[i] * inverse(quant::fp8_e4m3_value(b.scale[g])));
    }
  }
  return b;
}

void published_block(Format format, Values x, std::byte* out) {
  const std::vector<float> w = published_weights(format, x);
  switch (format) {
    case Format::Q4_0: return pack_plain(symmetric(x, 8), quant::LayoutQ4_0, out);
    case Format::Q4_1: return pack_plain(affine(x, 15), quant::LayoutQ4_1, out);
    case Format::Q5_0: return pack_plain(symmetric(x, 16), quant::LayoutQ5_0, out);
    case Format::Q5_1: return pack_plain(affine(x, 31), quant::LayoutQ5_1, out);
    case Format::Q8_0: return pack_plain(bytes_of_32(x), quant::LayoutQ8_0, out);
    case Format::Q8_1: return pack_plain(bytes_of_32(x), quant::LayoutQ8_1, out);
    case Format::Q2K: return pack_q2_k(affine_super(x, w, 16, {3, -0.5F, 15, true}, 15), out);
    case Format::Q3K: return pack_q3_k(symmetric_super(x, 4, 32, true), out);
    case Format::Q4K: return pack_q4_k(affine_super(x, w, 32, {15, -1.0F, 20, false}, 63), out);
    case Format::Q5K: return pack_q5_k(affine_super(x, w, 32, {31, -0.5F, 15, false}, 63), out);
    case Format::Q6K: return pack_q6_k(symmetric_super(x, 32, 128, false), out);
    case Format::Q8K: return pack_q8_k(bytes_of_256(x), out);
    case Format::Mxfp4: return pack_fp4(mxfp4(x), out);
    case Format::Nvfp4: return pack_fp4(nvfp4(x), out);
    case Format::Fp8E4m3: *out = static_cast<std::byte>(quant::to_fp8_e4m3(x[0])); return;
    case Format::Fp8E5m2: *out = static_cast<std::byte>(quant::to_fp8_e5m2(x[0])); return;
  }
}

}  // namespace

std::vector<float> published_weights(Format format, Values values) {
  std::vector<float> w(values.size(), 1.0F);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const float x = values[i];
    if (format == Format::Q2K) w[i] = std::fabs(x);
    if (format == Format::Q3K || format == Format::Q6K) w[i] = x * x;
    if (format == Format::Q4K || format == Format::Q5K) {
      float squares = 0;
      for (std::size_t k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) squares += values[k] * values[k];
      w[i] = std::sqrt(squares / 32) + std::fabs(x);
    }
  }
  return w;
}

void published_encode(Format format, Values values, std::span<std::byte> bytes) {
  const quant::FormatInfo& f = quant::info(format);
  const auto length = static_cast<std::size_t>(f.block_length);
  const auto size = static_cast<std::size_t>(f.block_bytes);
  for (std::size_t b = 0; b < values.size() / length; ++b) {
    published_block(format, values.subspan(b * length, length), bytes.data() + b * size);
  }
}

}  // namespace ricci::testing
