// Products of codes in 8 bits. Part of vector_kernels_body.h.
//
// With VNNI one instruction multiplies and adds four pairs a lane, u8 by i8; without it pairs are
// widened to 16 bits first, which no sum of two products leaves. The integers are the same.
#pragma once

#include "backend/cpu/kernels/vector_codes.h"
#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

constexpr std::int64_t StripWidth = IntegerKernels::Columns;

#if RICCI_VECTOR_BYTES == 64

// Four rows of 64 codes as [64][4].
struct FourRows {
  __m512i v[4];
};
inline FourRows four_rows(const std::int8_t* w, std::int64_t row) {
  const __m512i r0 = _mm512_loadu_si512(w);
  const __m512i r1 = _mm512_loadu_si512(w + row);
  const __m512i r2 = _mm512_loadu_si512(w + 2 * row);
  const __m512i r3 = _mm512_loadu_si512(w + 3 * row);
  const __m512i low_a = _mm512_unpacklo_epi8(r0, r1);
  const __m512i high_a = _mm512_unpackhi_epi8(r0, r1);
  const __m512i low_b = _mm512_unpacklo_epi8(r2, r3);
  const __m512i high_b = _mm512_unpackhi_epi8(r2, r3);
  // Columns 4i to 4i + 3 of each sixteen; then sixteens by themselves.
  const __m512i a0 = _mm512_unpacklo_epi16(low_a, low_b);
  const __m512i a1 = _mm512_unpackhi_epi16(low_a, low_b);
  const __m512i a2 = _mm512_unpacklo_epi16(high_a, high_b);
  const __m512i a3 = _mm512_unpackhi_epi16(high_a, high_b);
  const __m512i t0 = _mm512_shuffle_i32x4(a0, a1, 0x44);
  const __m512i t1 = _mm512_shuffle_i32x4(a0, a1, 0xEE);
  const __m512i t2 = _mm512_shuffle_i32x4(a2, a3, 0x44);
  const __m512i t3 = _mm512_shuffle_i32x4(a2, a3, 0xEE);
  return {{_mm512_shuffle_i32x4(t0, t2, 0x88), _mm512_shuffle_i32x4(t0, t2, 0xDD),
           _mm512_shuffle_i32x4(t1, t3, 0x88), _mm512_shuffle_i32x4(t1, t3, 0xDD)}};
}

void pack_four_rows(const std::int8_t* w, std::int64_t row, std::int8_t* to, std::int32_t* sums) {
  const FourRows four = four_rows(w, row);
  for (int v = 0; v < 4; ++v) {
    _mm512_storeu_si512(to + 64 * v, four.v[v]);
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi8(1), four.v[v]);
    const __m512i fours = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
    _mm512_storeu_si512(sums + 16 * v, _mm512_add_epi32(_mm512_loadu_si512(sums + 16 * v), fours));
  }
}

#elif RICCI_VECTOR_BYTES == 32

// Four rows of 32 codes as [32][4].
struct FourRows {
  __m256i v[4];
};
inline __m256i load_codes(const std::int8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline FourRows four_rows(const std::int8_t* w, std::int64_t row) {
  const __m256i r0 = load_codes(w);
  const __m256i r1 = load_codes(w + row);
  const __m256i r2 = load_codes(w + 2 * row);
  const __m256i r3 = load_codes(w + 3 * row);
  const __m256i low_a = _mm256_unpacklo_epi8(r0, r1);
  const __m256i high_a = _mm256_unpackhi_epi8(r0, r1);
  const __m256i low_b = _mm256_unpacklo_epi8(r2, r3);
  const __m256i high_b = _mm256_unpackhi_epi8(r2, r3);
  const __m256i a0 = _mm256_unpacklo_epi16(low_a, low_b);
  const __m256i a1 = _mm256_unpackhi_epi16(low_a, low_b);
  const __m256i a2 = _mm256_unpacklo_epi16(high_a, high_b);
  const __m256i a3 = _mm256_unpackhi_epi16(high_a, high_b);
  return {{_mm256_permute2x128_si256(a0, a1, 0x20), _mm256_permute2x128_si256(a2, a3, 0x20),
           _mm256_permute2x128_si256(a0, a1, 0x31), _mm256_permute2x128_si256(a2, a3, 0x31)}};
}

void pack_four_rows(const std::int8_t* w, std::int64_t row, std::int8_t* to, std::int32_t* sums) {
  for (int half = 0; half < 2; ++half, to += 128, sums += 32) {
    const FourRows four = four_rows(w + 32 * half, row);
    for (int v = 0; v < 4; ++v) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32 * v), four.v[v]);
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), four.v[v]);
      const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
      auto* total = reinterpret_cast<__m256i*>(sums + 8 * v);
      _mm256_storeu_si256(total, _mm256_add_epi32(_mm256_loadu_si256(total), fours));
    }
  }
}

#else

void pack_four_rows(const std::int8_t* w, std::int64_t row, std::int8_t* to, std::int32_t* sums) {
  for (std::int64_t d = 0; d < 4; ++d) {
    for (std::int64_t j = 0; j < StripWidth; ++j) {
      to[4 * j + d] = w[d * row + j];
      sums[j] += w[d * row + j];
    }
  }
}

#endif

void pack_integers(const std::int8_t* w, std::int64_t row, std::int64_t column,
                   std::int64_t columns, std::int64_t depth, std::int8_t* to, std::int32_t* sums) {
  for (std::int64_t n = 0; n < columns; n += StripWidth, sums += StripWidth) {
    const std::int64_t width = columns - n < StripWidth ? columns - n : StripWidth;
    for (std::int64_t k = 0; k < depth; k += 4, to += 4 * StripWidth) {
      const std::int64_t four = depth - k < 4 ? depth - k : 4;
      const std::int8_t* from = w + k * row + n * column;
      if (four == 4 && width == StripWidth && column == 1) {
        pack_four_rows(from, row, to, sums);
        continue;
      }
      __builtin_memset(to, 0, 4 * StripWidth);
      for (std::int64_t d = 0; d < four; ++d) {
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int8_t code = from[d * row + j * column];
          to[4 * j + d] = code;
          sums[j] += code;
        }
      }
    }
  }
}

// c += x·w where w lies in rows.
void sweep_plainly(const IntegerSweep& s, std::int64_t k0, std::int64_t n0) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    std::int32_t* c = s.c + r * s.c_row;
    for (std::int64_t k = k0; k < s.depth; ++k) {
      const std::int32_t x = s.x[r * s.x_row + k];
      const std::int8_t* w = s.w + k * s.w_row;
      for (std::int64_t n = n0; n < s.columns; ++n) c[n] += x * w[n];
    }
  }
}

#if RICCI_VECTOR_BYTES == 64

template <int Rows>
__attribute__((target("avx512vnni"))) void multiply_with_vnni(const std::uint8_t* x,
                                                              std::int64_t x_row,
                                                              const std::int8_t* strip,
                                                              std::int64_t depth, std::int32_t* c) {
  __m512i total[Rows][4];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) total[r][v] = _mm512_setzero_si512();
  }
  for (std::int64_t k = 0; k < depth; k += 4, strip += 4 * StripWidth) {
    __m512i w[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) w[v] = _mm512_loadu_si512(strip + 64 * v);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      int four;
      __builtin_memcpy(&four, x + r * x_row + k, sizeof four);
      const __m512i a = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) total[r][v] = _mm512_dpbusd_epi32(total[r][v], a, w[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) _mm512_storeu_si512(c + r * StripWidth + 16 * v, total[r][v]);
  }
}

// Whole fours of the depth and 64 columns at a time; gives the columns that are done.
__attribute__((target("avx512vnni"))) std::int64_t sweep_with_vnni(const IntegerSweep& s,
                                                                   std::int64_t depth) {
  std::int64_t n = 0;
  for (std::int64_t k = 0; k < depth; k += 4) {
    for (n = 0; n + 64 <= s.columns; n += 64) {
      const FourRows w = four_rows(s.w + k * s.w_row + n, s.w_row);
      for (std::int64_t r = 0; r < s.rows; ++r) {
        int four;
        __builtin_memcpy(&four, s.x + r * s.x_row + k, sizeof four);
        const __m512i a = _mm512_set1_epi32(four);
        std::int32_t* c = s.c + r * s.c_row + n;
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          _mm512_storeu_si512(c + 16 * v,
                              _mm512_dpbusd_epi32(_mm512_loadu_si512(c + 16 * v), a, w.v[v]));
        }
      }
    }
  }
  return n;
}

#elif RICCI_VECTOR_BYTES == 32

template <int Rows>
__attribute__((target("avxvnni"))) void multiply_with_vnni(const std::uint8_t* x,
                                                           std::int64_t x_row,
                                                           const std::int8_t* strip,
                                                           std::int64_t depth, std::int32_t* c) {
  for (int half = 0; half < 2; ++half) {
    __m256i total[Rows][4];
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) total[r][v] = _mm256_setzero_si256();
    }
    const std::int8_t* from = strip + 128 * half;
    for (std::int64_t k = 0; k < depth; k += 4, from += 4 * StripWidth) {
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) {
        int four;
        __builtin_memcpy(&four, x + r * x_row + k, sizeof four);
        const __m256i a = _mm256_set1_epi32(four);
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          total[r][v] = _mm256_dpbusd_avx_epi32(total[r][v], a, load_codes(from + 32 * v));
        }
      }
    }
    for (int r = 0; r < Rows; ++r) {
      for (int v = 0; v < 4; ++v) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + r * StripWidth + 32 * half + 8 * v),
                            total[r][v]);
      }
    }
  }
}

// 16 columns at a time, widened: sums of the first and of the last two of four, then both.
template <int Rows>
void multiply_widened(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                      std::int64_t depth, std::int32_t* c) {
  for (int part = 0; part < 4; ++part) {
    __m256i total[Rows][4];
#pragma GCC unroll 2
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) total[r][v] = _mm256_setzero_si256();
    }
    const std::int8_t* from = strip + 64 * part;
    for (std::int64_t k = 0; k < depth; k += 4, from += 4 * StripWidth) {
      __m256i w[4];
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        w[v] =
            _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 16 * v)));
      }
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) {
        int four;
        __builtin_memcpy(&four, x + r * x_row + k, sizeof four);
        const __m256i a = _mm256_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
          total[r][v] = _mm256_add_epi32(total[r][v], _mm256_madd_epi16(a, w[v]));
        }
      }
    }
    for (int r = 0; r < Rows; ++r) {
      for (int v = 0; v < 2; ++v) {
        const __m256i both = _mm256_hadd_epi32(total[r][2 * v], total[r][2 * v + 1]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + r * StripWidth + 16 * part + 8 * v),
                            _mm256_permute4x64_epi64(both, 0xD8));
      }
    }
  }
}

__attribute__((target("avxvnni"))) std::int64_t sweep_with_vnni(const IntegerSweep& s,
                                                                std::int64_t depth) {
  std::int64_t n = 0;
  for (std::int64_t k = 0; k < depth; k += 4) {
    for (n = 0; n + 32 <= s.columns; n += 32) {
      const FourRows w = four_rows(s.w + k * s.w_row + n, s.w_row);
      for (std::int64_t r = 0; r < s.rows; ++r) {
        int four;
        __builtin_memcpy(&four, s.x + r * s.x_row + k, sizeof four);
        const __m256i a = _mm256_set1_epi32(four);
        std::int32_t* c = s.c + r * s.c_row + n;
        for (int v = 0; v < 4; ++v) {
          auto* total = reinterpret_cast<__m256i*>(c + 8 * v);
          _mm256_storeu_si256(total, _mm256_dpbusd_avx_epi32(_mm256_loadu_si256(total), a, w.v[v]));
        }
      }
    }
  }
  return n;
}

#endif

#if RICCI_VECTOR_BYTES == 64

void multiply_one(const std::uint8_t* x, const std::int8_t* strip, std::int64_t depth,
                  std::int32_t* c) {
  __m512i total[8] = {};
  for (std::int64_t k = 0; k < depth; k += 4, strip += 4 * StripWidth) {
    int four;
    __builtin_memcpy(&four, x + k, sizeof four);
    const __m512i a = _mm512_broadcastq_epi64(_mm_cvtepu8_epi16(_mm_cvtsi32_si128(four)));
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) {
      const __m512i w = _mm512_cvtepi8_epi16(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(strip + 32 * v)));
      total[v] = _mm512_add_epi32(total[v], _mm512_madd_epi16(a, w));
    }
  }
  for (int v = 0; v < 8; ++v) {
    // Neighbours are the two halves of a sum.
    const __m512i both = _mm512_add_epi32(total[v], _mm512_srli_epi64(total[v], 32));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + 8 * v), _mm512_cvtepi64_epi32(both));
  }
}

void multiply_integers(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                       std::int64_t rows, std::int64_t depth, std::int32_t* c) {
  for (std::int64_t m = 0; m < rows; ++m) {
    multiply_one(x + m * x_row, strip, depth, c + m * StripWidth);
  }
}

void multiply_integers_vnni(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                            std::int64_t rows, std::int64_t depth, std::int32_t* c) {
  std::int64_t m = 0;
  for (; m + 6 <= rows; m += 6) {
    multiply_with_vnni<6>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
  }
  for (; m + 2 <= rows; m += 2) {
    multiply_with_vnni<2>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
  }
  if (m < rows) multiply_with_vnni<1>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
}

#elif RICCI_VECTOR_BYTES == 32

void multiply_integers(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                       std::int64_t rows, std::int64_t depth, std::int32_t* c) {
  std::int64_t m = 0;
  for (; m + 2 <= rows; m += 2) {
    multiply_widened<2>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
  }
  if (m < rows) multiply_widened<1>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
}

void multiply_integers_vnni(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                            std::int64_t rows, std::int64_t depth, std::int32_t* c) {
  std::int64_t m = 0;
  for (; m + 2 <= rows; m += 2) {
    multiply_with_vnni<2>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
  }
  if (m < rows) multiply_with_vnni<1>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
}

#else

void multiply_integers(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                       std::int64_t rows, std::int64_t depth, std::int32_t* c) {
  for (std::int64_t m = 0; m < rows; ++m, x += x_row, c += StripWidth) {
    for (std::int64_t j = 0; j < StripWidth; ++j) c[j] = 0;
    const std::int8_t* from = strip;
    for (std::int64_t k = 0; k < depth; k += 4, from += 4 * StripWidth) {
      for (std::int64_t j = 0; j < StripWidth; ++j) {
        c[j] += x[k] * from[4 * j] + x[k + 1] * from[4 * j + 1] + x[k + 2] * from[4 * j + 2] +
                x[k + 3] * from[4 * j + 3];
      }
    }
  }
}

#endif

void sweep_integers(const IntegerSweep& s) { sweep_plainly(s, 0, 0); }

constexpr IntegerKernels Integers = {.read = read_codes,
                                     .pack = pack_integers,
                                     .multiply = multiply_integers,
                                     .sweep = sweep_integers,
                                     .give_codes = give_codes,
                                     .give_sums = give_sums};

#if RICCI_VECTOR_BYTES >= 32

void sweep_integers_vnni(const IntegerSweep& s) {
  const std::int64_t whole = s.depth / 4 * 4;
  const std::int64_t done = whole == 0 ? 0 : sweep_with_vnni(s, whole);
  IntegerSweep rest = s;
  rest.depth = whole;
  sweep_plainly(rest, 0, done);
  sweep_plainly(s, whole, 0);
}

constexpr IntegerKernels IntegersVnni = {.read = read_codes,
                                         .pack = pack_integers,
                                         .multiply = multiply_integers_vnni,
                                         .sweep = sweep_integers_vnni,
                                         .give_codes = give_codes,
                                         .give_sums = give_sums};

#else

constexpr IntegerKernels IntegersVnni = {};

#endif

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
