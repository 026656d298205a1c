// Panels of bf16 in pairs, for the instruction that multiplies two of them a lane and adds both to
// a sum in f32: twice as many products as of f32. A place of a strip holds two numbers that follow
// each other in the depth; the last pair of an odd depth has a zero. Part of vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_narrow_panels.h"
#include "backend/cpu/kernels/vector_panels.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

#if RICCI_VECTOR_BYTES == 64

inline std::uint32_t pair_of(std::uint16_t first, std::uint16_t second) {
  return first | std::uint32_t{second} << 16;
}
inline void store_pair(float* to, std::uint32_t pair) { __builtin_memcpy(to, &pair, sizeof pair); }

inline __m512i pairs_of(const std::uint16_t* first, const std::uint16_t* second) {
  __m256i lower;
  __m256i upper;
  __builtin_memcpy(&lower, first, sizeof lower);
  __builtin_memcpy(&upper, second, sizeof upper);
  return _mm512_or_si512(_mm512_cvtepu16_epi32(lower),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
}

// A line whose numbers adjoin is pairs already.
inline void copy_pairs(const std::uint16_t* from, std::int64_t depth, float* to) {
  const std::int64_t whole = depth / 2;
  __builtin_memcpy(to, from, static_cast<std::size_t>(whole) * sizeof(float));
  if (depth % 2 != 0) store_pair(to + whole, pair_of(from[depth - 1], 0));
}

void pack_rows_of_pairs(const std::uint16_t* from, std::int64_t row, std::int64_t column,
                        std::int64_t rows, std::int64_t depth, float* to) {
  for (std::int64_t m = 0; m < rows; m += RowBlock, to += RowBlock * StripRow<float>) {
    const std::int64_t left = rows - m < RowBlock ? rows - m : RowBlock;
    const std::uint16_t* a = from + m * row;
    if (column == 1) {
      for (std::int64_t r = 0; r < RowBlock; ++r) {
        const std::int64_t source = r < left ? r : left - 1;  // the last one again: not used
        copy_pairs(a + source * row, depth, to + r * StripRow<float>);
      }
      continue;
    }
    for (std::int64_t k = 0; k < depth; k += 2) {
      float* out = to + k / 2 * RowBlock;
      const std::uint16_t* first = a + k * column;
      if (row == 1 && rows - m >= LaneCount<float> && k + 2 <= depth) {
        // A vector holds more than a column; the next one overwrites what is too much.
        _mm512_storeu_si512(out, pairs_of(first, first + column));
        continue;
      }
      for (std::int64_t r = 0; r < RowBlock; ++r) {
        const std::uint16_t second = r < left && k + 1 < depth ? first[r * row + column] : 0;
        store_pair(out + r, r < left ? pair_of(first[r * row], second) : 0);
      }
    }
  }
}

// One strip of B. `b` has `left` columns of it.
void pack_strip_of_pairs(const std::uint16_t* b, std::int64_t row, std::int64_t column,
                         std::int64_t left, std::int64_t depth, float* to) {
  constexpr int N = LaneCount<float>;
  constexpr std::int64_t Width = StripColumns<float>;
  std::int64_t k = 0;
  if (left >= Width && column == 1) {
    for (; k + 2 <= depth; k += 2) {
      const std::uint16_t* first = b + k * row;
      for (int v = 0; v < ColumnVectors; ++v) {
        _mm512_storeu_si512(to + k / 2 * Width + v * N,
                            pairs_of(first + v * N, first + row + v * N));
      }
    }
  } else if (left >= Width && row == 1) {
    for (; k + 2 * N <= depth; k += 2 * N) {
      for (int v = 0; v < ColumnVectors; ++v) {
        Lanes<float> square[N];
#pragma GCC unroll 16
        for (int j = 0; j < N; ++j) {
          __builtin_memcpy(&square[j], b + (v * N + j) * column + k, sizeof square[j]);
        }
        transpose<N / 2, float>(square);
#pragma GCC unroll 16
        for (int j = 0; j < N; ++j) store(to + (k / 2 + j) * Width + v * N, square[j]);
      }
    }
  }
  for (; k < depth; k += 2) {
    for (std::int64_t j = 0; j < Width; ++j) {
      const std::uint16_t* first = b + k * row + j * column;
      const std::uint16_t second = j < left && k + 1 < depth ? first[row] : 0;
      store_pair(to + k / 2 * Width + j, j < left ? pair_of(*first, second) : 0);
    }
  }
}

void pack_columns_of_pairs(const std::uint16_t* from, std::int64_t row, std::int64_t column,
                           std::int64_t columns, std::int64_t depth, float* to) {
  const std::int64_t places = (depth + 1) / 2;
  for (std::int64_t n = 0; n < columns; n += StripColumns<float>) {
    pack_strip_of_pairs(from + n * column, row, column, columns - n, depth, to + n * places);
  }
}

// `Count` rows of C, of one strip each of A and B.
template <bool Rows, int Count>
__attribute__((target("avx512bf16"))) void rows_of_pairs(const Panels<float>& p, const float* a,
                                                         const float* b, float* c,
                                                         std::int64_t columns) {
  __m512 total[Count][ColumnVectors] = {};
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < p.depth; ++k, a += Rows ? 1 : RowBlock, b += StripColumns<float>) {
    __m512i row[ColumnVectors];
#pragma GCC unroll 4
    for (int v = 0; v < ColumnVectors; ++v) row[v] = _mm512_loadu_si512(b + v * LaneCount<float>);
#pragma GCC unroll 8
    for (int r = 0; r < Count; ++r) {
      int pair;
      __builtin_memcpy(&pair, a + r * (Rows ? StripRow<float> : 1), sizeof pair);
      const __m512i x = _mm512_set1_epi32(pair);
#pragma GCC unroll 4
      for (int v = 0; v < ColumnVectors; ++v) {
        total[r][v] = _mm512_dpbf16_ps(total[r][v], (__m512bh)x, (__m512bh)row[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Count; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < ColumnVectors; ++v) {
      const std::int64_t first = v * LaneCount<float>;
      const std::int64_t left = columns - first;
      if (left <= 0) break;
      const auto some = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
      float* to = c + r * p.c_row + first;
      const __m512 before = p.accumulate ? _mm512_maskz_loadu_ps(some, to) : _mm512_setzero_ps();
      _mm512_mask_storeu_ps(to, some, _mm512_add_ps(before, total[r][v]));
    }
  }
}

template <bool Rows, int Count>
void last_rows_of_pairs(const Panels<float>& p, std::int64_t rows, const float* a, const float* b,
                        float* c, std::int64_t columns) {
  if constexpr (Count > 0) {
    if (rows < Count) return last_rows_of_pairs<Rows, Count - 1>(p, rows, a, b, c, columns);
    rows_of_pairs<Rows, Count>(p, a, b, c, columns);
  }
}

template <bool Rows>
void pair_product_of(const Panels<float>& p) {
  constexpr std::int64_t Width = StripColumns<float>;
  for (std::int64_t n = 0; n < p.n; n += Width) {
    for (std::int64_t m = 0; m < p.m; m += RowBlock) {
      last_rows_of_pairs<Rows, static_cast<int>(RowBlock)>(
          p, p.m - m < RowBlock ? p.m - m : RowBlock, p.a + m * StripRow<float>, p.b + n * p.depth,
          p.c + m * p.c_row + n, p.n - n < Width ? p.n - n : Width);
    }
  }
}

void pair_product(const Panels<float>& p) {
  return p.a_as_rows ? pair_product_of<true>(p) : pair_product_of<false>(p);
}

// Rows of A, as pairs.
struct PairRows {
  static constexpr std::int64_t Most = 12;
  static constexpr std::int64_t Depth = 4096;  // of numbers: more would need much stack
  alignas(64) std::uint16_t pairs[Most * Depth];
};

// What was widened before keeps its upper half.
inline void pair_rows(const Product<float, std::uint16_t>& p, PairRows& to) {
  for (std::int64_t r = 0; r < p.m; ++r) {
    const float* from = p.a + r * p.a_row;
    std::uint16_t* row = to.pairs + r * PairRows::Depth;
    for (std::int64_t k = 0; k < p.k; ++k) {
      row[k] = static_cast<std::uint16_t>(as_bits(from[k]) >> 16);
    }
  }
}

template <int Rows, int Columns>
__attribute__((target("avx512bf16"))) void dots_of_pairs(const Product<float, std::uint16_t>& p,
                                                         const std::uint16_t* a, std::int64_t n) {
  constexpr std::int64_t Step = 32;
  __m512 total[Rows][Columns] = {};
  const std::uint16_t* b = p.b + n * p.b_column;
  std::int64_t k = 0;
  for (; k + Step <= p.k; k += Step) {
    __m512i row[Rows];
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) row[r] = _mm512_loadu_si512(a + r * PairRows::Depth + k);
#pragma GCC unroll 6
    for (int j = 0; j < Columns; ++j) {
      const std::uint16_t* at = b + j * p.b_column + k;
      // Columns are short: what fetches ahead by itself stops at the end of each.
      __builtin_prefetch(at + Columns * p.b_column, 0, 2);
      const __m512i column = _mm512_loadu_si512(at);
#pragma GCC unroll 4
      for (int r = 0; r < Rows; ++r) {
        total[r][j] = _mm512_dpbf16_ps(total[r][j], (__m512bh)row[r], (__m512bh)column);
      }
    }
  }
  if (k < p.k) {
    const __mmask32 some = (__mmask32{1} << (p.k - k)) - 1;
    for (int j = 0; j < Columns; ++j) {
      const __m512i column = _mm512_maskz_loadu_epi16(some, b + j * p.b_column + k);
      for (int r = 0; r < Rows; ++r) {
        const __m512i row = _mm512_maskz_loadu_epi16(some, a + r * PairRows::Depth + k);
        total[r][j] = _mm512_dpbf16_ps(total[r][j], (__m512bh)row, (__m512bh)column);
      }
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < Columns; ++j) {
      float& c = p.c[r * p.c_row + n + j];
      const float sum = _mm512_reduce_add_ps(total[r][j]);
      c = p.accumulate ? c + sum : sum;
    }
  }
}

template <int Rows>
void dots_of_pair_rows(const Product<float, std::uint16_t>& p, const std::uint16_t* a) {
  constexpr int Together = Rows == 1 ? 6 : Rows == 2 ? 4 : 3;
  std::int64_t n = 0;
  for (; n + Together <= p.n; n += Together) dots_of_pairs<Rows, Together>(p, a, n);
  for (; n < p.n; ++n) dots_of_pairs<Rows, 1>(p, a, n);
}

void dots_of_few_pair_rows(const Product<float, std::uint16_t>& p, const std::uint16_t* a) {
  switch (p.m) {
    case 1: return dots_of_pair_rows<1>(p, a);
    case 2: return dots_of_pair_rows<2>(p, a);
    case 3: return dots_of_pair_rows<3>(p, a);
    default: return dots_of_pair_rows<4>(p, a);
  }
}

// As many rows and as much of the depth as the stack has room for.
void product_by_pair_dots(const Product<float, std::uint16_t>& p) {
  PairRows rows;
  auto part = p;
  for (std::int64_t k = 0; k < p.k; k += PairRows::Depth) {
    part.k = p.k - k < PairRows::Depth ? p.k - k : PairRows::Depth;
    part.accumulate = p.accumulate || k > 0;
    for (std::int64_t m = 0; m < p.m; m += PairRows::Most) {
      part.m = p.m - m < PairRows::Most ? p.m - m : PairRows::Most;
      part.a = p.a + m * p.a_row + k;
      part.b = p.b + k;
      part.c = p.c + m * p.c_row;
      pair_rows(part, rows);
      in_few_rows(part, [&](const Product<float, std::uint16_t>& few, std::int64_t first) {
        dots_of_few_pair_rows(few, rows.pairs + first * PairRows::Depth);
      });
    }
  }
}

constexpr NarrowKernels Bf16Pairs = {.together = 2,
                                     .rows = product_by_rows<float, FromBf16>,
                                     .dots = product_by_pair_dots,
                                     .pack_rows = pack_rows_of_pairs,
                                     .pack_columns = pack_columns_of_pairs,
                                     .multiply = pair_product};

#else

constexpr NarrowKernels Bf16Pairs = {};

#endif

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
