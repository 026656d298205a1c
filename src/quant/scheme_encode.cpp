// Encoders of the weight schemes: column by column, block by block along k.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "ricci/quant/scheme.h"
#include "ricci/quant/tiny_float.h"
#include "ricci/support/checked.h"
#include "ricci/support/stop.h"

#include "quant/fit.h"
#include "quant/fp4_fit.h"
#include "support/float_environment.h"

namespace ricci::quant {
namespace {

struct Column {
  std::vector<float> values;
  std::vector<float> weights;

  [[nodiscard]] Weighted all() const { return {values, weights}; }
};

struct Source {
  std::size_t k;
  std::size_t n;
  std::span<const float> weights;
  std::span<const float> importance;

  [[nodiscard]] Column column(std::size_t j) const {
    Column c{std::vector<float>(k), std::vector<float>(k, 1.0F)};
    for (std::size_t p = 0; p < k; ++p) {
      c.values[p] = weights[p * n + j];
      if (!importance.empty()) c.weights[p] = importance[p * n + j];
    }
    return c;
  }
};

// Calls f(first element, block, its place among the scales) for every block of every column. A
// block of no importance is encoded as if all of it mattered.
template <class F>
void for_each_block(const Source& source, std::size_t length, F&& f) {
  for (std::size_t j = 0; j < source.n; ++j) {
    throw_if_stopped();
    Column c = source.column(j);
    for (std::size_t first = 0; first < source.k; first += length) {
      const std::size_t count = std::min(length, source.k - first);
      const std::span<float> w = std::span(c.weights).subspan(first, count);
      if (std::ranges::none_of(w, [](float x) { return x > 0; })) std::ranges::fill(w, 1.0F);
      f(first * source.n + j, c.all().part(first, count), first / length * source.n + j);
    }
  }
}

void put_nibble(std::vector<std::byte>& codes, std::size_t e, unsigned code) {
  codes[e / 2] |= static_cast<std::byte>(e % 2 == 0 ? code : code << 4);
}

void encode_int8(const Source& source, std::size_t block, Matrix& out) {
  constexpr CodeRange Codes = {-127, 127};
  for_each_block(source, block, [&](std::size_t e, const Weighted& v, std::size_t at) {
    Least<float> scale;
    const double covering = std::fabs(of_largest_magnitude(v.values)) / Codes.hi;
    for (const double s : {best_scale(v, Codes), covering}) {
      const auto rounded = static_cast<float>(s);
      scale.offer(rounded, squared_error(v, {rounded, 0}, Codes));
    }
    out.scales[at] = scale.best;
    const double inverse = inverse_of(scale.best);
    for (std::size_t i = 0; i < v.values.size(); ++i) {
      out.codes[e + i * source.n] = static_cast<std::byte>(
          static_cast<std::int8_t>(nearest_code(v.values[i], inverse, Codes)));
    }
  });
}

// (code - zero)·scale, with code from `lowest` on. A block of one value is 1·scale.
struct Shifted {
  float scale = 0;
  float zero = 0;
};
Shifted shifted(const Line& line, int lowest) {
  if (line.scale == 0 || !std::isfinite(line.offset / line.scale)) {
    return {static_cast<float>(line.offset), 0};
  }
  return {static_cast<float>(line.scale), static_cast<float>(lowest - line.offset / line.scale)};
}
double shifted_error(const Weighted& v, const Shifted& s, const CodeRange& codes) {
  const double scale = s.scale;
  return squared_error(v, {scale, -s.zero * scale}, codes);
}

template <class Put>
void encode_shifted(const Source& source, std::size_t block, const CodeRange& codes, Matrix& out,
                    Put&& put) {
  for_each_block(source, block, [&](std::size_t e, const Weighted& v, std::size_t at) {
    const int count = codes.hi - codes.lo;
    const auto [least, most] = std::ranges::minmax(v.values);
    const Line covering = {(static_cast<double>(most) - least) / count, least};
    Least<Shifted> fit;
    for (const Line& line : {best_line(v, count), covering}) {
      const Shifted s = shifted(line, codes.lo);
      fit.offer(s, shifted_error(v, s, codes));
    }
    out.scales[at] = fit.best.scale;
    out.zero_points[at] = fit.best.zero;
    const double inverse = inverse_of(fit.best.scale);
    const double offset = -static_cast<double>(fit.best.zero) * fit.best.scale;
    for (std::size_t i = 0; i < v.values.size(); ++i) {
      put(e + i * source.n, static_cast<int>(nearest_code(v.values[i] - offset, inverse, codes)));
    }
  });
}

// FP8 has as many codes for every power of two: what matters is that the largest fits, and where
// within a power of two the values fall.
template <class To, class Value>
void encode_fp8(const Source& source, double largest_code, To to, Value value, Matrix& out) {
  for_each_block(source, source.k, [&](std::size_t e, const Weighted& v, std::size_t at) {
    const double covering = std::fabs(of_largest_magnitude(v.values)) / largest_code;
    const auto codes_error = [&](float scale) {
      const double inverse = inverse_of(scale);
      double sum = 0;
      for (std::size_t i = 0; i < v.values.size(); ++i) {
        const double off = v.values[i] - static_cast<double>(scale) *
                                             value(to(static_cast<float>(v.values[i] * inverse)));
        sum += v.weights[i] * off * off;
      }
      return sum;
    };
    Least<float> scale;
    constexpr int Tries = 16;
    for (int i = 0; i < Tries; ++i) {
      const auto rounded = static_cast<float>(covering * std::exp2(static_cast<double>(i) / Tries));
      scale.offer(rounded, codes_error(rounded));
    }
    out.scales[at] = scale.best;
    const double inverse = inverse_of(scale.best);
    for (std::size_t i = 0; i < v.values.size(); ++i) {
      out.codes[e + i * source.n] =
          static_cast<std::byte>(to(static_cast<float>(v.values[i] * inverse)));
    }
  });
}

// The global scale lets the largest block have E4M3's largest scale.
void encode_nvfp4_blocks(const Source& source, Matrix& out) {
  constexpr double LargestBlock = 6.0 * 448.0;
  const double largest =
      source.weights.empty() ? 0 : std::fabs(of_largest_magnitude(source.weights));
  out.global = largest == 0 ? 1.0F : static_cast<float>(largest / LargestBlock);
  if (out.global == 0) out.global = std::numeric_limits<float>::denorm_min();
  for_each_block(source, 16, [&](std::size_t e, const Weighted& v, std::size_t at) {
    const std::uint8_t scale = best_e4m3_scale(v, out.global);
    out.fp8_scales[at] = static_cast<std::byte>(scale);
    std::array<std::uint8_t, 16> codes{};
    set_fp4_codes(v, static_cast<double>(fp8_e4m3_value(scale)) * out.global, codes.data());
    for (std::size_t i = 0; i < v.values.size(); ++i) {
      put_nibble(out.codes, e + i * source.n, codes[i]);
    }
  });
}

void encode_rows(const Scheme& scheme, const Source& source, Matrix& out) {
  const std::size_t row_bytes = source.n == 0 ? 0 : out.codes.size() / source.n;
  for (std::size_t j = 0; j < source.n; ++j) {
    const Column c = source.column(j);
    encode(scheme.format, c.values, std::span(out.codes).subspan(j * row_bytes, row_bytes),
           c.weights);
  }
}

void require_source(const Scheme& scheme, const Source& source) {
  const std::size_t elements = source.k * source.n;
  if (source.weights.size() != elements ||
      (!source.importance.empty() && source.importance.size() != elements)) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("a matrix of {} times {} has {} weights, not {}", source.k,
                                source.n, elements, source.weights.size()));
  }
  for (std::size_t i = 0; i < elements; ++i) {
    if (!std::isfinite(source.weights[i])) {
      throw UserError(ErrorCode::Attr, fmt::format("element {} is {}, which scheme {} cannot hold",
                                                   i, source.weights[i], to_string(scheme)));
    }
    if (!source.importance.empty() &&
        !(std::isfinite(source.importance[i]) && source.importance[i] >= 0)) {
      throw UserError(ErrorCode::Attr,
                      fmt::format("the importance of element {} is {}; it must be finite and not "
                                  "negative",
                                  i, source.importance[i]));
    }
  }
}

}  // namespace

Matrix encode_matrix(const Scheme& scheme, std::int64_t k, std::int64_t n,
                     std::span<const float> weights, std::span<const float> importance) {
  const DefaultFloatEnvironment floats;
  const MatrixSizes sizes = sizes_of(scheme, k, n);
  const Source source = {static_cast<std::size_t>(k), static_cast<std::size_t>(n), weights,
                         importance};
  require_source(scheme, source);
  Matrix out;
  out.codes.resize(static_cast<std::size_t>(sizes.code_bytes));
  if (scheme.scale_is_fp8()) {
    out.fp8_scales.resize(static_cast<std::size_t>(sizes.scales));
  } else {
    out.scales.resize(static_cast<std::size_t>(sizes.scales));
  }
  out.zero_points.resize(static_cast<std::size_t>(sizes.zero_points));
  const auto block = static_cast<std::size_t>(scheme.group());
  switch (scheme.kind) {
    case SchemeKind::Int8Block: encode_int8(source, block, out); break;
    case SchemeKind::Int8BlockAsym:
      encode_shifted(source, block, {-128, 127}, out,
                     [&](std::size_t e, int code) { out.codes[e] = static_cast<std::byte>(code); });
      break;
    case SchemeKind::Int4Block:
      encode_shifted(source, block, {0, 15}, out, [&](std::size_t e, int code) {
        put_nibble(out.codes, e, static_cast<unsigned>(code));
      });
      break;
    case SchemeKind::Fp8E4m3: encode_fp8(source, 448, to_fp8_e4m3, fp8_e4m3_value, out); break;
    case SchemeKind::Fp8E5m2: encode_fp8(source, 57344, to_fp8_e5m2, fp8_e5m2_value, out); break;
    case SchemeKind::Nvfp4Block: encode_nvfp4_blocks(source, out); break;
    case SchemeKind::Packed: encode_rows(scheme, source, out); break;
  }
  return out;
}

}  // namespace ricci::quant
