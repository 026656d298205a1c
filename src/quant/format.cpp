#include "ricci/quant/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/stop.h"

#include "quant/codec.h"
#include "support/float_environment.h"

namespace ricci::quant {
namespace {

constexpr std::array Formats = {
    FormatInfo{Format::Q4_0, "q4_0", "4 bits, a scale per 32", 32, 18, 2, decode_q4_0, encode_q4_0},
    FormatInfo{Format::Q4_1, "q4_1", "4 bits, a scale and an offset per 32", 32, 20, 3, decode_q4_1,
               encode_q4_1},
    FormatInfo{Format::Q5_0, "q5_0", "5 bits, a scale per 32", 32, 22, 6, decode_q5_0, encode_q5_0},
    FormatInfo{Format::Q5_1, "q5_1", "5 bits, a scale and an offset per 32", 32, 24, 7, decode_q5_1,
               encode_q5_1},
    FormatInfo{Format::Q8_0, "q8_0", "8 bits, a scale per 32", 32, 34, 8, decode_q8_0, encode_q8_0},
    FormatInfo{Format::Q8_1, "q8_1", "8 bits, a scale and a sum per 32", 32, 36, 9, decode_q8_1,
               encode_q8_1},
    FormatInfo{Format::Q2K, "q2_k", "2 bits, 16 scales and offsets of 4 bits per 256", 256, 84, 10,
               decode_q2_k, encode_q2_k},
    FormatInfo{Format::Q3K, "q3_k", "3 bits, 16 scales of 6 bits per 256", 256, 110, 11,
               decode_q3_k, encode_q3_k},
    FormatInfo{Format::Q4K, "q4_k", "4 bits, 8 scales and offsets of 6 bits per 256", 256, 144, 12,
               decode_q4_k, encode_q4_k},
    FormatInfo{Format::Q5K, "q5_k", "5 bits, 8 scales and offsets of 6 bits per 256", 256, 176, 13,
               decode_q5_k, encode_q5_k},
    FormatInfo{Format::Q6K, "q6_k", "6 bits, 16 scales of 8 bits per 256", 256, 210, 14,
               decode_q6_k, encode_q6_k},
    FormatInfo{Format::Q8K, "q8_k", "8 bits, an f32 scale and 16 sums per 256", 256, 292, 15,
               decode_q8_k, encode_q8_k},
    FormatInfo{Format::Mxfp4, "mxfp4", "FP4, a power of two per 32", 32, 17, 39, decode_mxfp4,
               encode_mxfp4},
    FormatInfo{Format::Nvfp4, "nvfp4", "FP4, an E4M3 scale per 16", 64, 36, 40, decode_nvfp4,
               encode_nvfp4},
    FormatInfo{Format::Fp8E4m3, "fp8_e4m3", "FP8 E4M3, no scale", 1, 1, std::nullopt,
               decode_fp8_e4m3, encode_fp8_e4m3},
    FormatInfo{Format::Fp8E5m2, "fp8_e5m2", "FP8 E5M2, no scale", 1, 1, std::nullopt,
               decode_fp8_e5m2, encode_fp8_e5m2},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < Formats.size(); ++i) {
    if (static_cast<std::size_t>(Formats[i].format) != i) return false;
  }
  return true;
}
static_assert(in_order());

void require_bytes(const FormatInfo& f, std::size_t elements, std::size_t bytes) {
  const std::int64_t wanted = packed_bytes(f.format, static_cast<std::int64_t>(elements));
  if (static_cast<std::int64_t>(bytes) != wanted) {
    throw UserError(ErrorCode::Shape, fmt::format("{} elements of format {} take {} bytes, not {}",
                                                  elements, f.name, wanted, bytes));
  }
}

[[noreturn]] void refuse_value(std::string what) {
  throw UserError(ErrorCode::Attr, std::move(what));
}

bool has_room_for(Format format, float value) {
  return std::isfinite(value) || format == Format::Fp8E4m3 || format == Format::Fp8E5m2;
}

void require_encodable(const FormatInfo& f, std::span<const float> values,
                       std::span<const float> importance) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!has_room_for(f.format, values[i])) {
      refuse_value(
          fmt::format("element {} is {}, which format {} cannot hold", i, values[i], f.name));
    }
  }
  if (!importance.empty() && importance.size() != values.size()) {
    throw UserError(ErrorCode::Shape, fmt::format("importance has {} weights for {} elements",
                                                  importance.size(), values.size()));
  }
  for (std::size_t i = 0; i < importance.size(); ++i) {
    if (!std::isfinite(importance[i]) || importance[i] < 0) {
      refuse_value(fmt::format("the importance of element {} is {}; it must be finite and not "
                               "negative",
                               i, importance[i]));
    }
  }
}

}  // namespace

std::span<const FormatInfo> all_formats() noexcept { return Formats; }

const FormatInfo& info(Format format) noexcept { return Formats[static_cast<std::size_t>(format)]; }

std::optional<Format> format_from_name(std::string_view name) noexcept {
  const auto* found = std::ranges::find(Formats, name, &FormatInfo::name);
  if (found == Formats.end()) return std::nullopt;
  return found->format;
}

std::optional<Format> format_from_gguf_type(std::uint32_t type) noexcept {
  const auto* found =
      std::ranges::find(Formats, std::optional<std::uint32_t>(type), &FormatInfo::gguf_type);
  if (found == Formats.end()) return std::nullopt;
  return found->format;
}

std::int64_t packed_bytes(Format format, std::int64_t elements) {
  const FormatInfo& f = info(format);
  if (elements < 0 || elements % f.block_length != 0) {
    throw UserError(
        ErrorCode::Shape,
        fmt::format("{} elements are no whole number of blocks of {}, as format {} has", elements,
                    f.block_length, f.name),
        fmt::format("pad them to a multiple of {}, or choose another format", f.block_length));
  }
  return checked_mul(elements / f.block_length, f.block_bytes);
}

constexpr std::size_t BlocksALook = 1024;

void decode(Format format, std::span<const std::byte> bytes, std::span<float> values) {
  const DefaultFloatEnvironment floats;
  const FormatInfo& f = info(format);
  require_bytes(f, values.size(), bytes.size());
  const auto length = static_cast<std::size_t>(f.block_length);
  for (std::size_t b = 0; b < values.size() / length; ++b) {
    if (b % BlocksALook == 0) throw_if_stopped();
    f.decode(bytes.data() + b * static_cast<std::size_t>(f.block_bytes),
             values.data() + b * length);
  }
}

void encode(Format format, std::span<const float> values, std::span<std::byte> bytes,
            std::span<const float> importance) {
  const DefaultFloatEnvironment floats;
  const FormatInfo& f = info(format);
  require_bytes(f, values.size(), bytes.size());
  require_encodable(f, values, importance);
  const auto length = static_cast<std::size_t>(f.block_length);
  const std::vector<float> alike(length, 1.0F);
  for (std::size_t b = 0; b < values.size() / length; ++b) {
    if (b % BlocksALook == 0) throw_if_stopped();
    const float* weights = alike.data();
    if (!importance.empty()) {
      // A block of no importance at all is still encoded as well as it can be.
      const auto part = importance.subspan(b * length, length);
      if (std::ranges::any_of(part, [](float w) { return w > 0; })) weights = part.data();
    }
    f.encode(values.data() + b * length, weights,
             bytes.data() + b * static_cast<std::size_t>(f.block_bytes));
  }
}

}  // namespace ricci::quant
