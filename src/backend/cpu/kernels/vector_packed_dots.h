// One row of x with rows of a weight in few bits: codes become numbers in registers and are
// multiplied there. Part of vector_kernels_body.h.
//
// `sums` holds the sums of 16 neighbours of x each. A format whose numbers are scale·code - least
// needs the codes' products with x and those sums, nothing else.
#pragma once

#include "backend/cpu/kernels/vector_packed.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

void sum_sixteens(const float* x, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count / 16; ++i) {
    float total = 0;
    for (int j = 0; j < 16; ++j) total += x[16 * i + j];
    sums[i] = total;
  }
}

// acc[j] += Σ_r x[r]·codes[r][j]
void add_int8_rows(const std::int8_t* codes, std::int64_t stride, const float* x, std::int64_t rows,
                   std::int64_t count, float* acc) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4, codes += 4 * stride) {
    const float x0 = x[r];
    const float x1 = x[r + 1];
    const float x2 = x[r + 2];
    const float x3 = x[r + 3];
    for (std::int64_t j = 0; j < count; ++j) {
      acc[j] += x0 * static_cast<float>(codes[j]) + x1 * static_cast<float>(codes[stride + j]) +
                x2 * static_cast<float>(codes[2 * stride + j]) +
                x3 * static_cast<float>(codes[3 * stride + j]);
    }
  }
  for (; r < rows; ++r, codes += stride) {
    for (std::int64_t j = 0; j < count; ++j) acc[j] += x[r] * static_cast<float>(codes[j]);
  }
}

#if RICCI_VECTOR_BYTES == 64

// The eight scales and offsets of a block as the bytes of two words.
struct SubWords {
  std::uint64_t scales;
  std::uint64_t leasts;
};
inline SubWords sub_words(const std::uint8_t* s) {
  std::uint32_t a;
  std::uint32_t b;
  std::uint32_t c;
  __builtin_memcpy(&a, s, 4);
  __builtin_memcpy(&b, s + 4, 4);
  __builtin_memcpy(&c, s + 8, 4);
  const std::uint32_t scales = (c & 0x0F0F0F0FU) | ((a >> 6 & 0x03030303U) << 4);
  const std::uint32_t leasts = (c >> 4 & 0x0F0F0F0FU) | ((b >> 6 & 0x03030303U) << 4);
  return {std::uint64_t{scales} << 32 | (a & 0x3F3F3F3FU),
          std::uint64_t{leasts} << 32 | (b & 0x3F3F3F3FU)};
}
inline __m256 bytes_as_floats(std::uint64_t word) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(word))));
}
// Rows of q4_k, or of q5_k, where `High` says that there is a fifth bit and that codes lie further
// back, beside each other: x is read once for all of them, and what a row costs at its end is spent
// while another one is multiplied.
template <bool High, int Rows>
void add_affine(const std::uint8_t* rows, std::int64_t count, const float* x, const float* sums,
                float* y) {
  constexpr int Bytes = High ? 176 : 144;
  const std::int64_t stride = count * Bytes;
  const __m512 table = count_from(0);
  const __m512 sixteen = _mm512_set1_ps(16);
  const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
  __m512 total[Rows];
  __m256 offsets[Rows];
  for (int r = 0; r < Rows; ++r) {
    total[r] = _mm512_setzero_ps();
    offsets[r] = _mm256_setzero_ps();
  }
  for (std::int64_t b = 0; b < count; ++b, rows += Bytes, x += 256, sums += 16) {
    // Sums of 32: those of even places and those after them.
    const __m512 pairs = _mm512_loadu_ps(sums);
    const __m512 shifted = _mm512_permute_ps(pairs, 0xB1);
    const __m256 by_32 = _mm512_castps512_ps256(
        _mm512_permutexvar_ps(_mm512_castsi256_si512(even), _mm512_add_ps(pairs, shifted)));
    alignas(32) float scale[Rows][8];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
      const std::uint8_t* block = rows + r * stride;
      const SubWords words = sub_words(block + 4);
      _mm256_store_ps(scale[r], _mm256_mul_ps(bytes_as_floats(words.scales),
                                              _mm256_set1_ps(half_value(block))));
      const __m256 leasts =
          _mm256_mul_ps(bytes_as_floats(words.leasts), _mm256_set1_ps(half_value(block + 2)));
      offsets[r] = _mm256_fmadd_ps(leasts, by_32, offsets[r]);
    }
#pragma GCC unroll 4
    for (int p = 0; p < 4; ++p) {
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        const std::uint8_t* block = rows + r * stride;
        const std::uint8_t* codes = block + (High ? 48 : 16) + 32 * p;
        __m512 low_sum = _mm512_setzero_ps();
        __m512 high_sum = _mm512_setzero_ps();
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          const __m512i both = wide_bytes(codes + 16 * half);
          __m512 low = _mm512_permutexvar_ps(both, table);
          __m512 top = _mm512_permutexvar_ps(_mm512_srli_epi32(both, 4), table);
          if constexpr (High) {
            const __m512i high = wide_bytes(block + 16 + 16 * half);
            const __mmask16 in_low = _mm512_test_epi32_mask(high, _mm512_set1_epi32(1 << 2 * p));
            const __mmask16 in_top = _mm512_test_epi32_mask(high, _mm512_set1_epi32(2 << 2 * p));
            low = _mm512_mask_add_ps(low, in_low, low, sixteen);
            top = _mm512_mask_add_ps(top, in_top, top, sixteen);
          }
          low_sum = _mm512_fmadd_ps(low, _mm512_loadu_ps(x + 64 * p + 16 * half), low_sum);
          high_sum = _mm512_fmadd_ps(top, _mm512_loadu_ps(x + 64 * p + 32 + 16 * half), high_sum);
        }
        total[r] = _mm512_fmadd_ps(low_sum, _mm512_set1_ps(scale[r][2 * p]), total[r]);
        total[r] = _mm512_fmadd_ps(high_sum, _mm512_set1_ps(scale[r][2 * p + 1]), total[r]);
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    y[r] = _mm512_reduce_add_ps(_mm512_sub_ps(total[r], _mm512_zextps256_ps512(offsets[r])));
  }
}

template <bool High>
void dots_affine(const std::uint8_t* rows, std::int64_t row_count, std::int64_t count,
                 const float* x, const float* sums, float* y) {
  const std::int64_t stride = count * (High ? 176 : 144);
  std::int64_t r = 0;
  for (; r + 4 <= row_count; r += 4) add_affine<High, 4>(rows + r * stride, count, x, sums, y + r);
  for (; r < row_count; ++r) add_affine<High, 1>(rows + r * stride, count, x, sums, y + r);
}

// Rows of other formats one by one.
template <auto Dot, int Bytes>
void dots(const std::uint8_t* rows, std::int64_t row_count, std::int64_t count, const float* x,
          const float* sums, float* y) {
  for (std::int64_t r = 0; r < row_count; ++r, rows += count * Bytes) {
    y[r] = Dot(rows, count, x, sums);
  }
}

float dot_q4_0(const std::uint8_t* block, std::int64_t count, const float* x, const float*) {
  const __m512 table = count_from(-8);
  __m512 total = _mm512_setzero_ps();
  for (std::int64_t b = 0; b < count; ++b, block += 18, x += 32) {
    const __m512i both = wide_bytes(block + 2);
    __m512 sum = _mm512_mul_ps(_mm512_permutexvar_ps(both, table), _mm512_loadu_ps(x));
    sum = _mm512_fmadd_ps(_mm512_permutexvar_ps(_mm512_srli_epi32(both, 4), table),
                          _mm512_loadu_ps(x + 16), sum);
    total = _mm512_fmadd_ps(sum, _mm512_set1_ps(half_value(block)), total);
  }
  return _mm512_reduce_add_ps(total);
}

float dot_q8_0(const std::uint8_t* block, std::int64_t count, const float* x, const float*) {
  const auto signed_bytes = [](const std::uint8_t* from) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
  };
  __m512 total = _mm512_setzero_ps();
  for (std::int64_t b = 0; b < count; ++b, block += 34, x += 32) {
    __m512 sum = _mm512_mul_ps(signed_bytes(block + 2), _mm512_loadu_ps(x));
    sum = _mm512_fmadd_ps(signed_bytes(block + 18), _mm512_loadu_ps(x + 16), sum);
    total = _mm512_fmadd_ps(sum, _mm512_set1_ps(half_value(block)), total);
  }
  return _mm512_reduce_add_ps(total);
}

float dot_q6_k(const std::uint8_t* block, std::int64_t count, const float* x, const float* sums) {
  __m512 total = _mm512_setzero_ps();
  __m512 offsets = _mm512_setzero_ps();
  for (std::int64_t b = 0; b < count; ++b, block += 210, x += 256, sums += 16) {
    const __m512i codes =
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 192)));
    const __m512 scales =
        _mm512_mul_ps(_mm512_cvtepi32_ps(codes), _mm512_set1_ps(half_value(block + 208)));
    offsets = _mm512_fmadd_ps(scales, _mm512_loadu_ps(sums), offsets);
    alignas(64) float scale[16];
    _mm512_store_ps(scale, scales);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {  // two halves of the block, two parts of each 32
      const int half = i / 2;
      const int part = i % 2;
      const SixBits codes_of = six_bits(block, half, part);
#pragma GCC unroll 4
      for (int g = 0; g < 4; ++g) {
        const float* at = x + 128 * half + 32 * g + 16 * part;
        const __m512 product =
            _mm512_mul_ps(_mm512_cvtepi32_ps(codes_of.q[g]), _mm512_loadu_ps(at));
        total = _mm512_fmadd_ps(product, _mm512_set1_ps(scale[8 * half + 2 * g + part]), total);
      }
    }
  }
  return _mm512_reduce_add_ps(_mm512_fnmadd_ps(offsets, _mm512_set1_ps(32), total));
}

constexpr PackedKernels::Dots PackedDots = {.q4_0 = dots<dot_q4_0, 18>,
                                            .q8_0 = dots<dot_q8_0, 34>,
                                            .q4_k = dots_affine<false>,
                                            .q5_k = dots_affine<true>,
                                            .q6_k = dots<dot_q6_k, 210>};

#else

constexpr PackedKernels::Dots PackedDots = {};

#endif

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
