// Conversions between f32 and the 16-bit floats. Part of vector_kernels_body.h.
#pragma once

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

inline float as_float(std::uint32_t bits) {
  float f;
  __builtin_memcpy(&f, &bits, sizeof f);
  return f;
}

inline std::uint32_t as_bits(float f) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &f, sizeof bits);
  return bits;
}

void widen_bf16(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = as_float(std::uint32_t{from[i]} << 16);
}

void narrow_bf16(const float* from, std::uint16_t* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint32_t bits = as_bits(from[i]);
    const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
    to[i] = static_cast<std::uint16_t>((nan ? bits | 0x400000U : rounded) >> 16);
  }
}

#if RICCI_VECTOR_BYTES >= 32

void widen_f16(const std::uint16_t* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m128i half;
    __builtin_memcpy(&half, from + i, sizeof half);
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
  for (; i < count; ++i) to[i] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(from[i])));
}

void narrow_f16(const float* from, std::uint16_t* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0);
    __builtin_memcpy(to + i, &half, sizeof half);
  }
  for (; i < count; ++i) {
    const __m128i half = _mm_cvtps_ph(_mm_set_ss(from[i]), 0);
    to[i] = static_cast<std::uint16_t>(_mm_cvtsi128_si32(half));
  }
}

#else

float widen_half(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t rest = half & 0x7fffU;
  if (rest >= 0x7c00U) {  // infinity, or a NaN made quiet
    const std::uint32_t quiet = rest > 0x7c00U ? 0x400000U : 0U;
    return as_float(sign | 0x7f800000U | quiet | (rest & 0x3ffU) << 13);
  }
  // Subnormals included: the fraction moves up, and the exponent is made right by 2^112.
  return as_float(sign | as_bits(as_float(rest << 13) * 0x1p112F));
}

std::uint16_t narrow_half(float f) {
  const std::uint32_t bits = as_bits(f);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t rest = bits & 0x7fffffffU;
  std::uint32_t half = 0;
  if (rest > 0x7f800000U) {
    half = 0x7e00U | (rest >> 13 & 0x3ffU);
  } else if (rest >= 0x477ff000U) {  // rounds to 2^16 or more
    half = 0x7c00U;
  } else if (rest < 0x38800000U) {  // subnormal: adding 0.5 rounds at the last place of a half
    half = as_bits(as_float(rest) + 0.5F) - as_bits(0.5F);
  } else {
    half = (rest - 0x38000000U + 0xfffU + (rest >> 13 & 1U)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

void widen_f16(const std::uint16_t* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = widen_half(from[i]);
}

void narrow_f16(const float* from, std::uint16_t* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = narrow_half(from[i]);
}

#endif

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
