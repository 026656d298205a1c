// Weight schemes: how a matrix [k, n] of weights is stored in few bits. Some keep codes, scales and
// zero points in tensors of their own; the others are block formats (format.h), whose rows are the
// n outputs. `p` counts along k, `j` along n, B is the length of a block along k.
//
//   quant::Scheme s = *quant::scheme_from_name("int4_block_32");
//   quant::Matrix m = quant::encode_matrix(s, k, n, weights);
//   quant::decode_matrix(s, k, n, m.parts(), again);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/quant/format.h"

namespace ricci::quant {

enum class SchemeKind : std::uint8_t {
  Int8Block,      ///< code·scale[p/B, j], codes as i8 [k, n]
  Int8BlockAsym,  ///< (code - zero[p/B, j])·scale[p/B, j], codes as i8 [k, n]
  Int4Block,      ///< the same with codes 0 to 15: element e = p·n + j is in byte e/2, even e low
  Fp8E4m3,        ///< fp8(code)·scale[j], codes as bytes [k, n]
  Fp8E5m2,        ///< the same
  Nvfp4Block,     ///< fp4(code)·fp8(scale[p/16, j])·global, codes as in Int4Block, scales in E4M3
  Packed,         ///< a block format, its rows [n, k]
};

struct Scheme {
  SchemeKind kind = SchemeKind::Int8Block;
  std::int64_t block = 32;       ///< B, of the first three kinds
  Format format = Format::Q4_0;  ///< of Packed

  [[nodiscard]] static Scheme packed(Format format) {
    return {SchemeKind::Packed, info(format).block_length, format};
  }

  /// How many elements along k share a scale: B, 16 for NVFP4, a block of a packed format; 0 where
  /// a scale is for a whole column.
  [[nodiscard]] std::int64_t group() const noexcept;
  /// A tensor of scales in f32 is an operand.
  [[nodiscard]] bool has_scale() const noexcept;
  [[nodiscard]] bool has_zero_point() const noexcept;
  [[nodiscard]] bool scale_is_fp8() const noexcept { return kind == SchemeKind::Nvfp4Block; }
  [[nodiscard]] bool is_packed() const noexcept { return kind == SchemeKind::Packed; }
  /// Of the codes, and what lies among them: ten times the bits of an element, rounded.
  [[nodiscard]] std::int64_t tenths_of_bits() const noexcept;
  bool operator==(const Scheme&) const = default;
};

/// `int8_block_32`, `int8_block_asym_64`, `int4_block_32`, `fp8_e4m3`, `nvfp4_block`, or a block
/// format's name, `q4_k`.
[[nodiscard]] std::string to_string(const Scheme& scheme);
[[nodiscard]] std::optional<Scheme> scheme_from_name(std::string_view name);

/// How much a matrix takes.
struct MatrixSizes {
  std::int64_t code_bytes = 0;
  std::int64_t scales = 0;       ///< f32, or bytes where `scale_is_fp8`
  std::int64_t zero_points = 0;  ///< f32
};
/// UserError(shape) for negative sizes, for blocks of a packed format that do not divide k, and
/// where bytes do not fit in 64 bits; UserError(attr) for a block length below 1.
[[nodiscard]] MatrixSizes sizes_of(const Scheme& scheme, std::int64_t k, std::int64_t n);

/// What a stored matrix is made of. Parts that a scheme does not have are empty; scales of FP8
/// schemes may be left out, and are 1 then.
struct MatrixParts {
  std::span<const std::byte> codes;
  std::span<const float> scales;
  std::span<const std::byte> fp8_scales;
  std::span<const float> zero_points;
  float global = 1;
};

struct Matrix {
  std::vector<std::byte> codes;
  std::vector<float> scales;
  std::vector<std::byte> fp8_scales;
  std::vector<float> zero_points;
  float global = 1;

  [[nodiscard]] MatrixParts parts() const {
    return {codes, scales, fp8_scales, zero_points, global};
  }
};

/// The weights [k, n], row-major. UserError(shape) when a part has another size than `sizes_of`
/// says.
void decode_matrix(const Scheme& scheme, std::int64_t k, std::int64_t n, const MatrixParts& parts,
                   std::span<float> weights);

/// Codes and scales by least squares, `importance` [k, n] or empty. Errors as in `encode`.
[[nodiscard]] Matrix encode_matrix(const Scheme& scheme, std::int64_t k, std::int64_t n,
                                   std::span<const float> weights,
                                   std::span<const float> importance = {});

}  // namespace ricci::quant
