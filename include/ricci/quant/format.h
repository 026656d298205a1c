// Block formats: numbers in few bits with their scales beside them. A block of so many elements
// takes so many bytes, whatever they hold; one table says it all. The formats with a GGUF type are
// those that GGUF files store, byte for byte.
//
//   std::vector<std::byte> packed(quant::packed_bytes(Format::Q4K, 4096));
//   quant::encode(Format::Q4K, weights, packed);           // least squares
//   quant::decode(Format::Q4K, packed, weights_again);     // exactly what the format says
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ricci::quant {

enum class Format : std::uint8_t {
  Q4_0,     ///< 4 bits, a scale per 32
  Q4_1,     ///< 4 bits, a scale and an offset per 32
  Q5_0,     ///< 5 bits, a scale per 32
  Q5_1,     ///< 5 bits, a scale and an offset per 32
  Q8_0,     ///< 8 bits, a scale per 32
  Q8_1,     ///< as Q8_0, with the sum of the codes times the scale
  Q2K,      ///< 2 bits, 16 scales and offsets of 4 bits per 256
  Q3K,      ///< 3 bits, 16 scales of 6 bits per 256
  Q4K,      ///< 4 bits, 8 scales and offsets of 6 bits per 256
  Q5K,      ///< 5 bits, 8 scales and offsets of 6 bits per 256
  Q6K,      ///< 6 bits, 16 scales of 8 bits per 256
  Q8K,      ///< 8 bits, an f32 scale per 256, and sums of 16 codes
  Mxfp4,    ///< FP4, a power of two per 32
  Nvfp4,    ///< FP4, a scale in unsigned E4M3 per 16, four of them to a block
  Fp8E4m3,  ///< one byte an element, no scale
  Fp8E5m2,  ///< one byte an element, no scale
};

struct FormatInfo {
  Format format;
  std::string_view name;  ///< `q4_k`, in text, messages and tables
  std::string_view help;
  std::int64_t block_length;  ///< elements
  std::int64_t block_bytes;
  std::optional<std::uint32_t> gguf_type;  ///< the type's number in GGUF files
  /// One block. `decode` defines the format: every other reader of it must agree bit for bit (but
  /// for which NaN a NaN is).
  void (*decode)(const std::byte* block, float* values);
  /// `importance` has a weight per value.
  void (*encode)(const float* values, const float* importance, std::byte* block);
};

/// In the order of the enumeration.
[[nodiscard]] std::span<const FormatInfo> all_formats() noexcept;
[[nodiscard]] const FormatInfo& info(Format format) noexcept;
[[nodiscard]] inline std::string_view name(Format format) noexcept { return info(format).name; }
[[nodiscard]] std::optional<Format> format_from_name(std::string_view name) noexcept;
[[nodiscard]] std::optional<Format> format_from_gguf_type(std::uint32_t type) noexcept;

/// Bytes that `elements` take. UserError(shape) when they are no whole number of blocks, or the
/// bytes do not fit in 64 bits.
[[nodiscard]] std::int64_t packed_bytes(Format format, std::int64_t elements);

/// Whole blocks; UserError(shape) when `values` are none or `bytes` has another size. Any bytes are
/// values: scales that are infinite or NaN give what arithmetic gives.
void decode(Format format, std::span<const std::byte> bytes, std::span<float> values);

/// Finds the scales and codes that make the sum of importance * (value - decoded)² small; all
/// values count alike when `importance` is empty. Where a block has one scale, never worse than the
/// scale that covers the largest magnitude. The same values give the same bytes. UserError(shape)
/// as in `decode`; UserError(attr) for a value that is not finite, where the format has no such
/// value, and for importance that is negative or not finite. What is too large for the format is
/// held within it.
void encode(Format format, std::span<const float> values, std::span<std::byte> bytes,
            std::span<const float> importance = {});

}  // namespace ricci::quant
