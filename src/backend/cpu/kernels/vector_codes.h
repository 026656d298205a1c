// Codes on their way into products of integers and out of them. Part of vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

std::int64_t read_codes(const std::uint8_t* from, std::uint8_t flip, std::int64_t count,
                        std::uint8_t* to) {
  std::int64_t total = 0;
  std::int64_t i = 0;
#if RICCI_VECTOR_BYTES == 64
  const __m512i bits = _mm512_set1_epi8(static_cast<char>(flip));
  __m512i sums = _mm512_setzero_si512();
  for (; i + 64 <= count; i += 64) {
    const __m512i codes = _mm512_xor_si512(_mm512_loadu_si512(from + i), bits);
    _mm512_storeu_si512(to + i, codes);
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(codes, _mm512_setzero_si512()));
  }
  total = _mm512_reduce_add_epi64(sums);
#elif RICCI_VECTOR_BYTES == 32
  const __m256i bits = _mm256_set1_epi8(static_cast<char>(flip));
  __m256i sums = _mm256_setzero_si256();
  for (; i + 32 <= count; i += 32) {
    const __m256i given = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    const __m256i codes = _mm256_xor_si256(given, bits);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), codes);
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(codes, _mm256_setzero_si256()));
  }
  total = _mm256_extract_epi64(sums, 0) + _mm256_extract_epi64(sums, 1) +
          _mm256_extract_epi64(sums, 2) + _mm256_extract_epi64(sums, 3);
#endif
  for (; i < count; ++i) {
    to[i] = static_cast<std::uint8_t>(from[i] ^ flip);
    total += to[i];
  }
  return total;
}

/// Of column n. Rows are given by value: what is written might lie in one that is not.
inline double summed(SummedRow row, std::int64_t n) {
  return row.starts[n] + row.sums[n] - row.w_zeros[n] * row.x_sum;
}

void give_codes(const SummedRow& given, const CodeScale& given_scale, std::uint8_t* to) {
  const SummedRow row = given;
  const CodeScale scale = given_scale;
  // Adding and taking away 1.5·2^52 leaves the nearest whole number, ties to even. What is far
  // outside of all codes stays outside.
  constexpr double Round = 6755399441055744.0;
  constexpr double Far = 1e15;
  std::int32_t codes[64];
  for (std::int64_t first = 0; first < row.count; first += 64) {
    const std::int64_t count = row.count - first < 64 ? row.count - first : 64;
    for (std::int64_t n = 0; n < count; ++n) {
      double code = summed(row, first + n) * scale.factors[first + n];
      code = code > -Far ? code : -Far;
      code = code < Far ? code : Far;
      code = ((code + Round) - Round) + scale.zero;
      code = code > scale.low ? code : scale.low;
      code = code < scale.high ? code : scale.high;
      codes[n] = static_cast<std::int32_t>(code);
    }
    for (std::int64_t n = 0; n < count; ++n) to[first + n] = static_cast<std::uint8_t>(codes[n]);
  }
}

void give_sums(const SummedRow& given, std::int32_t* to) {
  const SummedRow row = given;
  for (std::int64_t n = 0; n < row.count; ++n) {
    to[n] = static_cast<std::int32_t>(static_cast<std::int64_t>(summed(row, n)));
  }
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
