#include "backend/cpu/structured/packed_weight.h"

#include <algorithm>

#include "ricci/quant/format.h"
#include "ricci/quant/tiny_float.h"

namespace ricci::cpu {
namespace {

using quant::Format;
using quant::SchemeKind;

PackedKernels::Blocks kernel_for(Format format) {
  const PackedKernels& k = vector_kernels().packed;
  switch (format) {
    case Format::Q4_0: return k.q4_0;
    case Format::Q8_0: return k.q8_0;
    case Format::Q4K: return k.q4_k;
    case Format::Q5K: return k.q5_k;
    case Format::Q6K: return k.q6_k;
    default: return nullptr;
  }
}

PackedKernels::Dot dot_for(Format format) {
  const PackedKernels::Dots& d = vector_kernels().packed.dots;
  switch (format) {
    case Format::Q4_0: return d.q4_0;
    case Format::Q8_0: return d.q8_0;
    case Format::Q4K: return d.q4_k;
    case Format::Q5K: return d.q5_k;
    case Format::Q6K: return d.q6_k;
    default: return nullptr;
  }
}

Int8Dots::Dot int8_dot_for(Format format) {
  const Int8Dots& d = int8_dots();
  switch (format) {
    case Format::Q4_0: return d.q4_0;
    case Format::Q8_0: return d.q8_0;
    case Format::Q4K: return d.q4_k;
    case Format::Q5K: return d.q5_k;
    case Format::Q6K: return d.q6_k;
    default: return nullptr;
  }
}

}  // namespace

StoredWeight::StoredWeight(const quant::Scheme& scheme, std::int64_t k, std::int64_t n,
                           const Parts& parts)
    : scheme_(scheme),
      parts_(parts),
      rows_(rows_are_outputs(scheme) ? n : k),
      columns_(rows_are_outputs(scheme) ? k : n),
      unit_(scheme.is_packed() ? quant::info(scheme.format).block_length : 1) {
  if (scheme.is_packed()) blocks_ = kernel_for(scheme.format);
}

bool StoredWeight::has_dots(const quant::Scheme& scheme) {
  return scheme.is_packed() && dot_for(scheme.format) != nullptr;
}

void StoredWeight::dots(std::int64_t row0, std::int64_t row1, const float* x, const float* sums,
                        float* y) const {
  const quant::FormatInfo& format = quant::info(scheme_.format);
  const std::int64_t count = columns_ / format.block_length;
  const std::uint8_t* rows = parts_.codes + row0 * count * format.block_bytes;
  dot_for(scheme_.format)(rows, row1 - row0, count, x, sums, y);
}

bool StoredWeight::has_int8_dots(const quant::Scheme& scheme) {
  return scheme.is_packed() && int8_dot_for(scheme.format) != nullptr;
}

float StoredWeight::dot(std::int64_t row, const Int8Row& x) const {
  const quant::FormatInfo& format = quant::info(scheme_.format);
  const std::int64_t count = columns_ / format.block_length;
  return int8_dot_for(scheme_.format)(parts_.codes + row * count * format.block_bytes, count, x);
}

bool StoredWeight::has_row_sums(const quant::Scheme& scheme) {
  return scheme.kind == SchemeKind::Int8Block || scheme.kind == SchemeKind::Int8BlockAsym;
}

void StoredWeight::add_rows(const float* x, std::int64_t column0, std::int64_t column1, float* part,
                            float* y) const {
  const auto* codes = reinterpret_cast<const std::int8_t*>(parts_.codes) + column0;
  const std::int64_t count = column1 - column0;
  std::fill_n(y, count, 0.0F);
  for (std::int64_t r = 0; r < rows_; r += scheme_.group()) {
    const std::int64_t last = std::min(rows_, r + scheme_.group());
    std::fill_n(part, count, 0.0F);
    vector_kernels().packed.add_int8_rows(codes + r * columns_, columns_, x + r, last - r, count,
                                          part);
    const float* scales = parts_.scales + r / scheme_.group() * columns_ + column0;
    if (scheme_.kind == SchemeKind::Int8BlockAsym) {
      float sum = 0;
      for (std::int64_t i = r; i < last; ++i) sum += x[i];
      const float* zeros = parts_.zeros + r / scheme_.group() * columns_ + column0;
      for (std::int64_t j = 0; j < count; ++j) part[j] -= zeros[j] * sum;
    }
    for (std::int64_t j = 0; j < count; ++j) y[j] += scales[j] * part[j];
  }
}

std::int64_t StoredWeight::code_place(std::int64_t row, std::int64_t column) const {
  const std::int64_t e = row * columns_ + column;
  switch (scheme_.kind) {
    case SchemeKind::Packed: {
      const quant::FormatInfo& format = quant::info(scheme_.format);
      return e / format.block_length * format.block_bytes;
    }
    case SchemeKind::Int4Block:
    case SchemeKind::Nvfp4Block: return e / 2;
    default: return e;
  }
}

void StoredWeight::decode(std::int64_t row0, std::int64_t row1, std::int64_t column0,
                          std::int64_t column1, float* to, std::int64_t stride) const {
  // Parts of rows that lie apart are no order the processor foresees.
  constexpr std::int64_t Ahead = 8;
  constexpr std::int64_t CacheLine = 64;
  for (std::int64_t r = row0; r < row1; ++r, to += stride) {
    if (r + Ahead < rows_) {
      const std::int64_t last = code_place(r + Ahead, column1);
      for (std::int64_t i = code_place(r + Ahead, column0); i < last; i += CacheLine) {
        __builtin_prefetch(parts_.codes + i);
      }
    }
    decode_row(r, column0, column1, to);
  }
}

void StoredWeight::decode_blocks(std::int64_t row, std::int64_t column0, std::int64_t column1,
                                 float* to) const {
  const quant::FormatInfo& format = quant::info(scheme_.format);
  const std::int64_t first = (row * columns_ + column0) / format.block_length;
  const std::int64_t count = (column1 - column0) / format.block_length;
  const std::uint8_t* from = parts_.codes + first * format.block_bytes;
  if (blocks_ != nullptr) return blocks_(from, count, to);
  for (std::int64_t b = 0; b < count; ++b) {
    format.decode(reinterpret_cast<const std::byte*>(from + b * format.block_bytes),
                  to + b * format.block_length);
  }
}

// Two codes to a byte: a row may begin in the middle of one.
void StoredWeight::decode_nibbles(std::int64_t row, std::int64_t column0, std::int64_t count,
                                  float* to) const {
  const std::int64_t at = row / scheme_.group() * columns_ + column0;
  const float* zeros = parts_.zeros == nullptr ? nullptr : parts_.zeros + at;
  const std::int64_t e = row * columns_ + column0;
  if (scheme_.kind == SchemeKind::Int4Block && e % 2 == 0) {
    return vector_kernels().packed.int4(parts_.codes + e / 2, parts_.scales + at, zeros, count, to);
  }
  for (std::int64_t j = 0; j < count; ++j) {
    const std::uint8_t byte = parts_.codes[(e + j) / 2];
    const auto code = static_cast<std::uint8_t>((e + j) % 2 == 0 ? byte & 15U : byte >> 4);
    if (scheme_.kind == SchemeKind::Int4Block) {
      const float zero = zeros == nullptr ? 0 : zeros[j];
      to[j] = (static_cast<float>(code) - zero) * parts_.scales[at + j];
    } else {
      to[j] =
          quant::fp4_value(code) * quant::fp8_e4m3_value(parts_.fp8_scales[at + j]) * parts_.global;
    }
  }
}

void StoredWeight::decode_row(std::int64_t row, std::int64_t column0, std::int64_t column1,
                              float* to) const {
  const PackedKernels& kernels = vector_kernels().packed;
  const std::int64_t count = column1 - column0;
  const std::int64_t e = row * columns_ + column0;
  const float* by_column = parts_.scales == nullptr ? nullptr : parts_.scales + column0;
  switch (scheme_.kind) {
    case SchemeKind::Packed: return decode_blocks(row, column0, column1, to);
    case SchemeKind::Int8Block:
    case SchemeKind::Int8BlockAsym: {
      const std::int64_t at = row / scheme_.group() * columns_ + column0;
      const bool moved = scheme_.kind == SchemeKind::Int8BlockAsym;
      return kernels.int8(reinterpret_cast<const std::int8_t*>(parts_.codes) + e,
                          parts_.scales + at, moved ? parts_.zeros + at : nullptr, count, to);
    }
    case SchemeKind::Fp8E4m3: return kernels.e4m3(parts_.codes + e, by_column, count, to);
    case SchemeKind::Fp8E5m2: return kernels.e5m2(parts_.codes + e, by_column, count, to);
    case SchemeKind::Int4Block:
    case SchemeKind::Nvfp4Block: return decode_nibbles(row, column0, count, to);
  }
}

}  // namespace ricci::cpu
