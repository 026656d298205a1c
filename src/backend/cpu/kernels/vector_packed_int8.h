// Rows of a weight in few bits with a row of x in 8 bits. Codes of the weight have no sign, or give
// it to x; what a format subtracts from all its codes is a sum of x. Part of vector_kernels_body.h.
//
// The functions are there once with VNNI and once without: two products of a code below 64 (or 128
// in q8_0) and one below 128 fit into 16 bits, so that both give the same integers.
#pragma once

#include "backend/cpu/kernels/vector_packed_dots.h"

#if RICCI_VECTOR_BYTES >= 32

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

inline __m256i load_32(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline float f16_value(const std::uint8_t* from) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, from, sizeof bits);
  return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}
// Eight bytes as numbers.
inline __m256 unsigned_numbers(const std::uint8_t* from) {
  long long word;
  __builtin_memcpy(&word, from, sizeof word);
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(word)));
}
inline __m256 signed_numbers(const std::uint8_t* from) {
  long long word;
  __builtin_memcpy(&word, from, sizeof word);
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(word)));
}
inline float sum_of(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
// Scales and offsets of 6 bits in a block of q4_k or q5_k, a byte each.
inline void six_bit_parts(const std::uint8_t* s, std::uint8_t* scales, std::uint8_t* leasts) {
  std::uint32_t a;
  std::uint32_t b;
  std::uint32_t c;
  __builtin_memcpy(&a, s, 4);
  __builtin_memcpy(&b, s + 4, 4);
  __builtin_memcpy(&c, s + 8, 4);
  const std::uint32_t low_scales = a & 0x3F3F3F3FU;
  const std::uint32_t low_leasts = b & 0x3F3F3F3FU;
  const std::uint32_t high_scales = (c & 0x0F0F0F0FU) | ((a >> 6 & 0x03030303U) << 4);
  const std::uint32_t high_leasts = (c >> 4 & 0x0F0F0F0FU) | ((b >> 6 & 0x03030303U) << 4);
  __builtin_memcpy(scales, &low_scales, 4);
  __builtin_memcpy(scales + 4, &high_scales, 4);
  __builtin_memcpy(leasts, &low_leasts, 4);
  __builtin_memcpy(leasts + 4, &high_leasts, 4);
}

#define RICCI_INT8_NAME(name) name##_pairs
#define RICCI_INT8_TARGET
#define RICCI_INT8_DOT(u, s) _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1))
#include "backend/cpu/kernels/vector_packed_int8_body.h"
#undef RICCI_INT8_NAME
#undef RICCI_INT8_TARGET
#undef RICCI_INT8_DOT

#define RICCI_INT8_NAME(name) name##_vnni
#if RICCI_VECTOR_BYTES == 64
#define RICCI_INT8_TARGET __attribute__((target("avx512vnni")))
#define RICCI_INT8_DOT(u, s) _mm256_dpbusd_epi32(_mm256_setzero_si256(), u, s)
#else
#define RICCI_INT8_TARGET __attribute__((target("avxvnni")))
#define RICCI_INT8_DOT(u, s) _mm256_dpbusd_avx_epi32(_mm256_setzero_si256(), u, s)
#endif
#include "backend/cpu/kernels/vector_packed_int8_body.h"
#undef RICCI_INT8_NAME
#undef RICCI_INT8_TARGET
#undef RICCI_INT8_DOT

constexpr Int8Dots PackedInt8Dots = {.q4_0 = int8_dot_q4_0_pairs,
                                     .q8_0 = int8_dot_q8_0_pairs,
                                     .q4_k = int8_dot_q4_k_pairs,
                                     .q5_k = int8_dot_q5_k_pairs,
                                     .q6_k = int8_dot_q6_k_pairs};
constexpr Int8Dots PackedInt8DotsVnni = {.q4_0 = int8_dot_q4_0_vnni,
                                         .q8_0 = int8_dot_q8_0_vnni,
                                         .q4_k = int8_dot_q4_k_vnni,
                                         .q5_k = int8_dot_q5_k_vnni,
                                         .q6_k = int8_dot_q6_k_vnni};

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET

#else

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {
constexpr Int8Dots PackedInt8Dots = {};
constexpr Int8Dots PackedInt8DotsVnni = {};
}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET

#endif
