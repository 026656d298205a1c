// Conversions between f32 and the 16-bit floats, and loads that convert. Part of
// vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_lanes.h"

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

/// How the numbers of an operand become those that are multiplied: as they are, or widened.
template <class T>
struct AsIs {
  using Stored = T;
  static T one(T x) { return x; }
  static Lanes<T> load(const T* from) { return RICCI_VECTOR_TARGET::load(from); }
  static Lanes<T> load_some(const T* from, int count) {
    return RICCI_VECTOR_TARGET::load_some(from, count);
  }
};

template <class From>
inline Lanes<float> load_some_narrow(const std::uint16_t* from, int count) {
  std::uint16_t held[LaneCount<float>] = {};
  for (int i = 0; i < count; ++i) held[i] = from[i];
  return From::load(held);
}

struct FromBf16 {
  using Stored = std::uint16_t;
  static float one(std::uint16_t x) { return as_float(std::uint32_t{x} << 16); }
  static Lanes<float> load(const std::uint16_t* from) {
    using Halves __attribute__((vector_size(RICCI_VECTOR_BYTES / 2))) = std::uint16_t;
    Halves halves;
    __builtin_memcpy(&halves, from, sizeof halves);
    return (Lanes<float>)(__builtin_convertvector(halves, Lanes<std::uint32_t>) << 16);
  }
  static Lanes<float> load_some(const std::uint16_t* from, int count) {
    return load_some_narrow<FromBf16>(from, count);
  }
};

struct FromF16 {
  using Stored = std::uint16_t;
#if RICCI_VECTOR_BYTES == 64
  static float one(std::uint16_t x) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x))); }
  static Lanes<float> load(const std::uint16_t* from) {
    __m256i halves;
    __builtin_memcpy(&halves, from, sizeof halves);
    return (Lanes<float>)_mm512_cvtph_ps(halves);
  }
#elif RICCI_VECTOR_BYTES == 32
  static float one(std::uint16_t x) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x))); }
  static Lanes<float> load(const std::uint16_t* from) {
    __m128i halves;
    __builtin_memcpy(&halves, from, sizeof halves);
    return (Lanes<float>)_mm256_cvtph_ps(halves);
  }
#else
  static float one(std::uint16_t x) { return widen_half(x); }
  static Lanes<float> load(const std::uint16_t* from) {
    Lanes<float> out;
    for (int i = 0; i < LaneCount<float>; ++i) out[i] = widen_half(from[i]);
    return out;
  }
#endif
  static Lanes<float> load_some(const std::uint16_t* from, int count) {
    return load_some_narrow<FromF16>(from, count);
  }
};

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
