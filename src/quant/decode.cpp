// Decoding: the formulas of the formats on their fields, in f32. Products of a scale in f16 and
// whole numbers of few bits are exact there, so that the order of factors does not matter and an
// element is rounded once at most.
#include "ricci/quant/tiny_float.h"

#include "quant/codec.h"

namespace ricci::quant {
namespace {

float widened(Float16 v) { return static_cast<float>(static_cast<double>(v)); }

void decode_scaled(const std::byte* block, const PlainLayout& layout, float* values) {
  const PlainBlock b = unpack_plain(block, layout);
  const float d = widened(b.d);
  for (std::size_t i = 0; i < PlainBlock::Length; ++i)
    values[i] = d * static_cast<float>(b.code[i]);
}

void decode_shifted(const std::byte* block, const PlainLayout& layout, float* values) {
  const PlainBlock b = unpack_plain(block, layout);
  const float d = widened(b.d);
  const float m = widened(b.extra);
  for (std::size_t i = 0; i < PlainBlock::Length; ++i) {
    values[i] = d * static_cast<float>(b.code[i]) + m;
  }
}

void decode_affine(const AffineBlock& b, std::size_t sub_length, float* values) {
  const float d = widened(b.d);
  const float dmin = widened(b.dmin);
  for (std::size_t i = 0; i < AffineBlock::Length; ++i) {
    const std::size_t j = i / sub_length;
    values[i] = d * static_cast<float>(b.scale[j]) * static_cast<float>(b.code[i]) -
                dmin * static_cast<float>(b.min[j]);
  }
}

void decode_symmetric(const SymmetricBlock& b, float* values) {
  const float d = widened(b.d);
  for (std::size_t i = 0; i < SymmetricBlock::Length; ++i) {
    values[i] = d * static_cast<float>(b.scale[i / 16]) * static_cast<float>(b.code[i]);
  }
}

}  // namespace

void decode_q4_0(const std::byte* block, float* values) {
  decode_scaled(block, LayoutQ4_0, values);
}
void decode_q4_1(const std::byte* block, float* values) {
  decode_shifted(block, LayoutQ4_1, values);
}
void decode_q5_0(const std::byte* block, float* values) {
  decode_scaled(block, LayoutQ5_0, values);
}
void decode_q5_1(const std::byte* block, float* values) {
  decode_shifted(block, LayoutQ5_1, values);
}
void decode_q8_0(const std::byte* block, float* values) {
  decode_scaled(block, LayoutQ8_0, values);
}
void decode_q8_1(const std::byte* block, float* values) {
  decode_scaled(block, LayoutQ8_1, values);
}

void decode_q2_k(const std::byte* block, float* values) {
  decode_affine(unpack_q2_k(block), 16, values);
}
void decode_q3_k(const std::byte* block, float* values) {
  decode_symmetric(unpack_q3_k(block), values);
}
void decode_q4_k(const std::byte* block, float* values) {
  decode_affine(unpack_q4_k(block), 32, values);
}
void decode_q5_k(const std::byte* block, float* values) {
  decode_affine(unpack_q5_k(block), 32, values);
}
void decode_q6_k(const std::byte* block, float* values) {
  decode_symmetric(unpack_q6_k(block), values);
}
void decode_q8_k(const std::byte* block, float* values) {
  const WideBlock b = unpack_q8_k(block);
  for (std::size_t i = 0; i < WideBlock::Length; ++i) {
    values[i] = b.d * static_cast<float>(b.code[i]);
  }
}

void decode_mxfp4(const std::byte* block, float* values) {
  const auto b = unpack_fp4<Mxfp4Fields>(block);
  for (std::size_t i = 0; i < Mxfp4Fields::Length; ++i) {
    values[i] = fp4_value(b.code[i]) * e8m0_value(b.scale[0]);
  }
}

// The scales have no sign; their top bit says nothing.
void decode_nvfp4(const std::byte* block, float* values) {
  const auto b = unpack_fp4<Nvfp4Fields>(block);
  for (std::size_t i = 0; i < Nvfp4Fields::Length; ++i) {
    const std::uint8_t scale = b.scale[i / Nvfp4Fields::GroupLength] & 0x7FU;
    values[i] = fp4_value(b.code[i]) * fp8_e4m3_value(scale);
  }
}

void decode_fp8_e4m3(const std::byte* block, float* values) {
  *values = fp8_e4m3_value(std::to_integer<std::uint8_t>(*block));
}
void decode_fp8_e5m2(const std::byte* block, float* values) {
  *values = fp8_e5m2_value(std::to_integer<std::uint8_t>(*block));
}

}  // namespace ricci::quant
