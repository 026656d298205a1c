// Panels of 16-bit floats, widened while they are packed. Part of vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_narrow.h"
#include "backend/cpu/kernels/vector_panels.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

template <class From>
void widen_line(const std::uint16_t* from, std::int64_t count, float* to) {
  constexpr std::int64_t Lane = LaneCount<float>;
  std::int64_t i = 0;
  for (; i + Lane <= count; i += Lane) store(to + i, From::load(from + i));
  for (; i < count; ++i) to[i] = From::one(from[i]);
}

template <class From>
void pack_narrow_rows(const std::uint16_t* from, std::int64_t row, std::int64_t column,
                      std::int64_t rows, std::int64_t depth, float* to) {
  for (std::int64_t m = 0; m < rows; m += RowBlock, to += RowBlock * StripRow<float>) {
    const std::int64_t left = rows - m < RowBlock ? rows - m : RowBlock;
    const std::uint16_t* a = from + m * row;
    if (column == 1) {
      for (std::int64_t r = 0; r < RowBlock; ++r) {
        const std::int64_t source = r < left ? r : left - 1;  // the last one again: not used
        widen_line<From>(a + source * row, depth, to + r * StripRow<float>);
      }
      continue;
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      float* out = to + k * RowBlock;
      if (row == 1 && rows - m >= LaneCount<float> && LaneCount<float> >= RowBlock) {
        // A vector holds more than a column; the next one overwrites what is too much.
        store(out, From::load(a + k * column));
        continue;
      }
      for (std::int64_t r = 0; r < RowBlock; ++r) {
        out[r] = r < left ? From::one(a[r * row + k * column]) : 0.0F;
      }
    }
  }
}

// One strip of B. `from` has `left` columns of it.
template <class From>
void pack_narrow_strip(const std::uint16_t* b, std::int64_t row, std::int64_t column,
                       std::int64_t left, std::int64_t depth, float* to) {
  constexpr int N = LaneCount<float>;
  constexpr std::int64_t Width = StripColumns<float>;
  std::int64_t k = 0;
  if (left >= Width && column == 1) {
    for (; k < depth; ++k) widen_line<From>(b + k * row, Width, to + k * Width);
  } else if (left >= Width && row == 1) {
    for (; k + N <= depth; k += N) {
      for (int v = 0; v < ColumnVectors; ++v) {
        Lanes<float> square[N];
#pragma GCC unroll 16
        for (int j = 0; j < N; ++j) square[j] = From::load(b + (v * N + j) * column + k);
        transpose<N / 2, float>(square);
#pragma GCC unroll 16
        for (int j = 0; j < N; ++j) store(to + (k + j) * Width + v * N, square[j]);
      }
    }
  }
  for (; k < depth; ++k) {
    for (std::int64_t j = 0; j < Width; ++j) {
      to[k * Width + j] = j < left ? From::one(b[k * row + j * column]) : 0.0F;
    }
  }
}

template <class From>
void pack_narrow_columns(const std::uint16_t* from, std::int64_t row, std::int64_t column,
                         std::int64_t columns, std::int64_t depth, float* to) {
  for (std::int64_t n = 0; n < columns; n += StripColumns<float>) {
    pack_narrow_strip<From>(from + n * column, row, column, columns - n, depth, to + n * depth);
  }
}

template <class From>
constexpr NarrowKernels narrow_kernels() {
  return {.together = 1,
          .rows = product_by_rows<float, From>,
          .dots = product_by_dots<float, From>,
          .pack_rows = pack_narrow_rows<From>,
          .pack_columns = pack_narrow_columns<From>,
          .multiply = panel_product<float>};
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
