#include "ricci/quant/scheme.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "ricci/quant/tiny_float.h"
#include "ricci/support/checked.h"

#include "support/float_environment.h"

namespace ricci::quant {
namespace {

struct KindRow {
  SchemeKind kind;
  std::string_view name;
  bool has_block;  // the name goes on with `_B`
};
// `int8_block_asym` before `int8_block`, which it begins with.
constexpr std::array Kinds = {
    KindRow{SchemeKind::Int8BlockAsym, "int8_block_asym", true},
    KindRow{SchemeKind::Int8Block, "int8_block", true},
    KindRow{SchemeKind::Int4Block, "int4_block", true},
    KindRow{SchemeKind::Fp8E4m3, "fp8_e4m3", false},
    KindRow{SchemeKind::Fp8E5m2, "fp8_e5m2", false},
    KindRow{SchemeKind::Nvfp4Block, "nvfp4_block", false},
};

std::optional<std::int64_t> positive_number(std::string_view digits) {
  std::int64_t v = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
  if (error != std::errc() || end != digits.data() + digits.size() || v < 1) return std::nullopt;
  if (digits.front() == '0') return std::nullopt;
  return v;
}

std::int64_t blocks_of(std::int64_t k, std::int64_t length) {
  return k / length + (k % length != 0 ? 1 : 0);
}

void require_part(std::string_view what, std::size_t given, std::int64_t wanted,
                  const Scheme& scheme) {
  if (std::cmp_equal(given, wanted)) return;
  throw UserError(ErrorCode::Shape, fmt::format("a matrix of scheme {} has {} {}, not {}",
                                                to_string(scheme), wanted, what, given));
}

void require_parts(const Scheme& s, const MatrixSizes& sizes, const MatrixParts& parts) {
  const bool fp8 = s.kind == SchemeKind::Fp8E4m3 || s.kind == SchemeKind::Fp8E5m2;
  require_part("bytes of codes", parts.codes.size(), sizes.code_bytes, s);
  if (!(fp8 && parts.scales.empty())) {
    require_part("scales", parts.scales.size(), s.scale_is_fp8() ? 0 : sizes.scales, s);
  }
  require_part("scales of 8 bits", parts.fp8_scales.size(), s.scale_is_fp8() ? sizes.scales : 0, s);
  require_part("zero points", parts.zero_points.size(), sizes.zero_points, s);
}

unsigned nibble(std::span<const std::byte> codes, std::size_t e) {
  const auto byte = std::to_integer<unsigned>(codes[e / 2]);
  return e % 2 == 0 ? byte & 15U : byte >> 4;
}

// One element; `e` is its place in [k, n], `at` that of its scale.
float decoded(const Scheme& s, const MatrixParts& m, std::size_t e, std::size_t j, std::size_t at) {
  switch (s.kind) {
    case SchemeKind::Int8Block:
      return static_cast<float>(std::to_integer<std::int8_t>(m.codes[e])) * m.scales[at];
    case SchemeKind::Int8BlockAsym:
      return (static_cast<float>(std::to_integer<std::int8_t>(m.codes[e])) - m.zero_points[at]) *
             m.scales[at];
    case SchemeKind::Int4Block:
      return (static_cast<float>(nibble(m.codes, e)) - m.zero_points[at]) * m.scales[at];
    case SchemeKind::Fp8E4m3:
      return fp8_e4m3_value(std::to_integer<std::uint8_t>(m.codes[e])) *
             (m.scales.empty() ? 1.0F : m.scales[j]);
    case SchemeKind::Fp8E5m2:
      return fp8_e5m2_value(std::to_integer<std::uint8_t>(m.codes[e])) *
             (m.scales.empty() ? 1.0F : m.scales[j]);
    case SchemeKind::Nvfp4Block:
      return fp4_value(static_cast<std::uint8_t>(nibble(m.codes, e))) *
             fp8_e4m3_value(std::to_integer<std::uint8_t>(m.fp8_scales[at])) * m.global;
    case SchemeKind::Packed: break;
  }
  throw InternalError("packed schemes are decoded by rows");
}

}  // namespace

std::int64_t Scheme::group() const noexcept {
  switch (kind) {
    case SchemeKind::Int8Block:
    case SchemeKind::Int8BlockAsym:
    case SchemeKind::Int4Block: return block;
    case SchemeKind::Fp8E4m3:
    case SchemeKind::Fp8E5m2: return 0;
    case SchemeKind::Nvfp4Block: return 16;
    case SchemeKind::Packed: break;
  }
  return info(format).block_length;
}

bool Scheme::has_scale() const noexcept { return kind != SchemeKind::Packed; }

bool Scheme::has_zero_point() const noexcept {
  return kind == SchemeKind::Int8BlockAsym || kind == SchemeKind::Int4Block;
}

std::int64_t Scheme::tenths_of_bits() const noexcept {
  switch (kind) {
    case SchemeKind::Int8Block:
    case SchemeKind::Int8BlockAsym:
    case SchemeKind::Fp8E4m3:
    case SchemeKind::Fp8E5m2: return 80;
    case SchemeKind::Int4Block:
    case SchemeKind::Nvfp4Block: return 40;
    case SchemeKind::Packed: break;
  }
  const FormatInfo& f = info(format);
  return (160 * f.block_bytes / f.block_length + 1) / 2;
}

std::string to_string(const Scheme& scheme) {
  for (const KindRow& row : Kinds) {
    if (row.kind != scheme.kind) continue;
    return row.has_block ? fmt::format("{}_{}", row.name, scheme.block) : std::string(row.name);
  }
  return std::string(name(scheme.format));
}

std::optional<Scheme> scheme_from_name(std::string_view name) {
  for (const KindRow& row : Kinds) {
    if (!name.starts_with(row.name)) continue;
    if (!row.has_block && name == row.name) return Scheme{row.kind, 0, Format::Q4_0};
    std::string_view rest = name.substr(row.name.size());
    if (!row.has_block || rest.size() < 2 || rest.front() != '_') continue;
    const auto block = positive_number(rest.substr(1));
    if (block) return Scheme{row.kind, *block, Format::Q4_0};
  }
  const auto format = format_from_name(name);
  if (!format) return std::nullopt;
  return Scheme::packed(*format);
}

MatrixSizes sizes_of(const Scheme& scheme, std::int64_t k, std::int64_t n) {
  if (k < 0 || n < 0) {
    throw UserError(ErrorCode::Shape, fmt::format("a matrix of {} times {} has no size", k, n));
  }
  if (scheme.is_packed()) {
    return {.code_bytes = checked_mul(packed_bytes(scheme.format, k), n)};
  }
  const std::int64_t elements = checked_mul(k, n);
  const std::int64_t group = scheme.group();
  if (scheme.kind == SchemeKind::Fp8E4m3 || scheme.kind == SchemeKind::Fp8E5m2) {
    return {.code_bytes = elements, .scales = n};
  }
  if (group < 1) {
    throw UserError(ErrorCode::Attr, fmt::format("a block of {} elements", scheme.block),
                    "scales are for blocks of 1 or more");
  }
  MatrixSizes sizes;
  const bool nibbles =
      scheme.kind == SchemeKind::Int4Block || scheme.kind == SchemeKind::Nvfp4Block;
  sizes.code_bytes = nibbles ? elements / 2 + elements % 2 : elements;
  sizes.scales = checked_mul(blocks_of(k, group), n);
  if (scheme.has_zero_point()) sizes.zero_points = sizes.scales;
  return sizes;
}

void decode_matrix(const Scheme& scheme, std::int64_t k, std::int64_t n, const MatrixParts& parts,
                   std::span<float> weights) {
  const DefaultFloatEnvironment floats;
  const MatrixSizes sizes = sizes_of(scheme, k, n);
  require_parts(scheme, sizes, parts);
  require_part("weights", weights.size(), checked_mul(k, n), scheme);
  const auto rows = static_cast<std::size_t>(k);
  const auto columns = static_cast<std::size_t>(n);
  if (scheme.is_packed()) {
    std::vector<float> row(rows);
    const std::size_t row_bytes = columns == 0 ? 0 : parts.codes.size() / columns;
    for (std::size_t j = 0; j < columns; ++j) {
      decode(scheme.format, parts.codes.subspan(j * row_bytes, row_bytes), row);
      for (std::size_t p = 0; p < rows; ++p) weights[p * columns + j] = row[p];
    }
    return;
  }
  const auto group = static_cast<std::size_t>(std::max<std::int64_t>(scheme.group(), 1));
  for (std::size_t p = 0; p < rows; ++p) {
    for (std::size_t j = 0; j < columns; ++j) {
      const std::size_t e = p * columns + j;
      weights[e] = decoded(scheme, parts, e, j, p / group * columns + j);
    }
  }
}

}  // namespace ricci::quant
