// Products of codes in 8 bits. Part of vector_kernels_body.h.
//
// With VNNI one instruction multiplies and adds four pairs a lane; where a machine has AVX-512
// without it, and everywhere else, the compiler makes vectors of plain loops.
#pragma once

#include "backend/cpu/kernels/vector_kernels.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

constexpr std::int64_t StripWidth = IntegerKernels::Columns;

void pack_integers(const std::int8_t* w, std::int64_t row, std::int64_t column,
                   std::int64_t columns, std::int64_t depth, std::int8_t* to, std::int32_t* sums) {
  for (std::int64_t n = 0; n < columns; n += StripWidth) {
    const std::int64_t width = columns - n < StripWidth ? columns - n : StripWidth;
    for (std::int64_t j = 0; j < width; ++j) sums[n + j] = 0;
    for (std::int64_t k = 0; k < depth; k += 4, to += 4 * StripWidth) {
      __builtin_memset(to, 0, 4 * StripWidth);
      const std::int64_t four = depth - k < 4 ? depth - k : 4;
      for (std::int64_t d = 0; d < four; ++d) {
        const std::int8_t* from = w + (k + d) * row + n * column;
        for (std::int64_t j = 0; j < width; ++j) {
          const std::int8_t code = from[j * column];
          to[4 * j + d] = code;
          sums[n + j] += code;
        }
      }
    }
  }
}

template <int Rows>
void multiply_plainly(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                      std::int64_t depth, std::int32_t* c) {
  std::int32_t total[Rows][StripWidth] = {};
  for (std::int64_t k = 0; k < depth; k += 4, strip += 4 * StripWidth) {
    for (int r = 0; r < Rows; ++r) {
      const std::uint8_t* a = x + r * x_row + k;
      for (int j = 0; j < StripWidth; ++j) {
        total[r][j] += a[0] * strip[4 * j] + a[1] * strip[4 * j + 1] + a[2] * strip[4 * j + 2] +
                       a[3] * strip[4 * j + 3];
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < StripWidth; ++j) c[r * StripWidth + j] = total[r][j];
  }
}

void multiply_any(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                  std::int64_t rows, std::int64_t depth, std::int32_t* c) {
  for (std::int64_t m = 0; m < rows; ++m) {
    multiply_plainly<1>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
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

void multiply_integers(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                       std::int64_t rows, std::int64_t depth, std::int32_t* c) {
  static const bool has_vnni = __builtin_cpu_supports("avx512vnni") != 0;
  if (!has_vnni) return multiply_any(x, x_row, strip, rows, depth, c);
  std::int64_t m = 0;
  for (; m + 6 <= rows; m += 6) {
    multiply_with_vnni<6>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
  }
  for (; m + 2 <= rows; m += 2) {
    multiply_with_vnni<2>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
  }
  if (m < rows) multiply_with_vnni<1>(x + m * x_row, x_row, strip, depth, c + m * StripWidth);
}

#else

void multiply_integers(const std::uint8_t* x, std::int64_t x_row, const std::int8_t* strip,
                       std::int64_t rows, std::int64_t depth, std::int32_t* c) {
  multiply_any(x, x_row, strip, rows, depth, c);
}

#endif

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
