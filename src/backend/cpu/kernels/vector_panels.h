// Products of packed matrices: the way of all fast ones. Part of vector_kernels_body.h.
//
// A is stored as strips of RowBlock rows, B as strips of StripColumns columns, each with the
// numbers the innermost loop needs next behind each other. Depth is cut so that a strip of B stays
// in the first cache while the strips of A go past it.
#pragma once

#include "backend/cpu/kernels/vector_product.h"
#include "backend/cpu/kernels/vector_tiny.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

template <class T>
constexpr std::int64_t StripColumns = std::int64_t{ColumnVectors} * LaneCount<T>;
/// Bytes of B's strip: half of the first cache. The strips of AVX-512 are wider, and its machines
/// read the second cache fast enough for them.
constexpr std::int64_t PanelDepthBytes = RICCI_VECTOR_BYTES == 64 ? 49152 : 16384;
template <class T>
constexpr std::int64_t PanelDepth =
    PanelDepthBytes / (std::int64_t{ColumnVectors} * RICCI_VECTOR_BYTES);
/// From row to row in a strip of A whose rows lie behind each other: no multiple of a page, so that
/// they do not compete for the same lines of the cache.
template <class T>
constexpr std::int64_t StripRow = PanelDepth<T> + 64 / static_cast<std::int64_t>(sizeof(T));

// Exchanges the off-diagonal blocks of `Width` lanes in two rows of a square.
template <int Width, class T, int... I>
inline void exchange(Lanes<T>& a, Lanes<T>& b, Numbers<I...>) {
  constexpr int N = LaneCount<T>;
  const Lanes<T> upper = __builtin_shufflevector(a, b, ((I & Width) == 0 ? I : N + I - Width)...);
  b = __builtin_shufflevector(a, b, ((I & Width) == 0 ? I + Width : N + I)...);
  a = upper;
}

template <int Width, class T>
inline void transpose(Lanes<T> (&rows)[LaneCount<T>]) {
  if constexpr (Width > 0) {
#pragma GCC unroll 16
    for (int i = 0; i < LaneCount<T>; ++i) {
      if ((i & Width) == 0) {
        exchange<Width, T>(rows[i], rows[i + Width], typename CountTo<LaneCount<T>>::type{});
      }
    }
    transpose<Width / 2, T>(rows);
  }
}

// Rows behind each other: a strip is a copy of them.
template <class T>
void pack_rows_as_rows(const T* from, std::int64_t row, std::int64_t rows, std::int64_t depth,
                       T* to) {
  for (std::int64_t m = 0; m < rows; m += RowBlock, to += RowBlock * StripRow<T>) {
    for (std::int64_t r = 0; r < RowBlock; ++r) {
      const std::int64_t source = m + r < rows ? m + r : rows - 1;  // the last one again: not used
      __builtin_memcpy(to + r * StripRow<T>, from + source * row,
                       static_cast<std::size_t>(depth) * sizeof(T));
    }
  }
}

// Column by column.
template <class T>
void pack_rows_as_columns(const T* from, std::int64_t row, std::int64_t column, std::int64_t rows,
                          std::int64_t depth, T* to) {
  for (std::int64_t m = 0; m < rows; m += RowBlock, to += RowBlock * StripRow<T>) {
    const std::int64_t left = rows - m;
    const T* a = from + m * row;
    if (row == 1 && left >= LaneCount<T> && LaneCount<T> >= RowBlock) {
      // A vector holds more than a column; the next one overwrites what is too much.
      for (std::int64_t k = 0; k < depth; ++k) store(to + k * RowBlock, load(a + k * column));
      continue;
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t r = 0; r < RowBlock; ++r) {
        to[k * RowBlock + r] = r < left ? a[r * row + k * column] : T{};
      }
    }
  }
}

template <class T>
void pack_rows(const T* from, std::int64_t row, std::int64_t column, std::int64_t rows,
               std::int64_t depth, T* to) {
  if (column == 1) return pack_rows_as_rows(from, row, rows, depth, to);
  pack_rows_as_columns(from, row, column, rows, depth, to);
}

// A strip of B whose columns have their numbers behind each other.
template <class T>
void pack_transposed_strip(const T* b, std::int64_t column, std::int64_t depth, T* to) {
  constexpr int N = LaneCount<T>;
  std::int64_t k = 0;
#if RICCI_VECTOR_BYTES == 64 && defined(__AVX512F__)
  if constexpr (IsFloat<T>) {
    for (; k + 4 <= depth; k += 4) {
      for (int v = 0; v < ColumnVectors; ++v) {
        __m512 rows[4];
        turn_four(b + v * N * column + k, column, rows);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          _mm512_storeu_ps(to + (k + j) * StripColumns<T> + v * N, rows[j]);
        }
      }
    }
  }
#endif
  for (; k + N <= depth; k += N) {
    for (int v = 0; v < ColumnVectors; ++v) {
      Lanes<T> square[N];
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) square[j] = load(b + (v * N + j) * column + k);
      transpose<N / 2, T>(square);
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) store(to + (k + j) * StripColumns<T> + v * N, square[j]);
    }
  }
  for (; k < depth; ++k) {
    for (std::int64_t j = 0; j < StripColumns<T>; ++j)
      to[k * StripColumns<T> + j] = b[j * column + k];
  }
}

// A transpose, square by square.
template <class T>
void turn_matrix(const T* from, std::int64_t from_row, std::int64_t rows, std::int64_t columns,
                 T* to, std::int64_t to_row, std::int64_t width) {
  constexpr int N = LaneCount<T>;
  for (std::int64_t k = 0; k < columns; k += N) {
    const std::int64_t across = columns - k < N ? columns - k : N;
    for (std::int64_t j = 0; j < width; j += N) {
      const std::int64_t down = width - j < N ? width - j : N;
      const T* at = from + j * from_row + k;
      T* out = to + k * to_row + j;
      Lanes<T> square[N];
      if (across == N && down == N && rows - j >= N) {
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) square[i] = load(at + i * from_row);
        transpose<N / 2, T>(square);
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) store(out + i * to_row, square[i]);
        continue;
      }
      for (int i = 0; i < N; ++i) {
        square[i] = j + i < rows ? load_count(at + i * from_row, across) : Lanes<T>{};
      }
      transpose<N / 2, T>(square);
      for (int i = 0; i < across; ++i) store_count(out + i * to_row, square[i], down);
    }
  }
}

// Strips of B whose rows have their numbers behind each other: row by row, so that memory is read
// in order.
template <class T, int Strips>
void pack_plain_strips(const T* b, std::int64_t row, std::int64_t depth, T* to) {
  for (std::int64_t k = 0; k < depth; ++k, b += row, to += StripColumns<T>) {
#pragma GCC unroll 4
    for (int strip = 0; strip < Strips; ++strip) {
#pragma GCC unroll 4
      for (int v = 0; v < ColumnVectors; ++v) {
        const std::int64_t at = v * LaneCount<T>;
        store(to + strip * StripColumns<T> * depth + at, load(b + strip * StripColumns<T> + at));
      }
    }
  }
}

template <class T>
void pack_columns(const T* from, std::int64_t row, std::int64_t column, std::int64_t columns,
                  std::int64_t depth, T* to) {
  constexpr int Together = 4;
  std::int64_t n = 0;
  if (column == 1) {
    for (; columns - n >= Together * StripColumns<T>; n += Together * StripColumns<T>) {
      pack_plain_strips<T, Together>(from + n, row, depth, to + n * depth);
    }
  }
  for (; n < columns; n += StripColumns<T>) {
    const T* b = from + n * column;
    T* strip = to + n * depth;
    const std::int64_t left = columns - n;
    if (left >= StripColumns<T> && column == 1) {
      pack_plain_strips<T, 1>(b, row, depth, strip);
    } else if (left >= StripColumns<T> && row == 1) {
      pack_transposed_strip(b, column, depth, strip);
    } else {
      for (std::int64_t k = 0; k < depth; ++k) {
        for (std::int64_t j = 0; j < StripColumns<T>; ++j) {
          strip[k * StripColumns<T> + j] = j < left ? b[k * row + j * column] : T{};
        }
      }
    }
  }
}

// One block of C from a strip of each. A step is 20 instructions and the loop around it four more,
// which cost nothing on a core of one's own but a seventh of the speed on one that another thread
// shares: hence the unrolling.
template <class T, bool Rows, int Count>
inline void panel_block(std::int64_t depth, const T* a, const T* b,
                        Lanes<T> (&total)[Count][ColumnVectors]) {
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < depth; ++k, a += Rows ? 1 : RowBlock, b += StripColumns<T>) {
    Lanes<T> row[ColumnVectors];
#pragma GCC unroll 4
    for (int v = 0; v < ColumnVectors; ++v) row[v] = load(b + v * LaneCount<T>);
#pragma GCC unroll 8
    for (int r = 0; r < Count; ++r) {
      const T x = a[r * (Rows ? StripRow<T> : 1)];
#pragma GCC unroll 4
      for (int v = 0; v < ColumnVectors; ++v) total[r][v] += x * row[v];
    }
  }
}

// The edge of C: fewer columns than a block has.
template <class T, int Count>
void store_edge(const Lanes<T> (&total)[Count][ColumnVectors], T* c, std::int64_t c_row,
                std::int64_t columns, bool accumulate) {
  T held[Count * StripColumns<T>];
  for (int r = 0; r < Count; ++r) {
    for (int v = 0; v < ColumnVectors; ++v) {
      store(held + r * StripColumns<T> + v * LaneCount<T>, total[r][v]);
    }
  }
  for (std::int64_t r = 0; r < Count; ++r) {
    for (std::int64_t j = 0; j < columns; ++j) {
      T& to = c[r * c_row + j];
      const T sum = held[r * StripColumns<T> + j];
      to = accumulate ? static_cast<T>(to + sum) : sum;
    }
  }
}

// `Count` rows of C, of one strip each of A and B.
template <class T, bool Rows, int Count>
inline void panel_rows(const Panels<T>& p, const T* a, const T* b, T* c, std::int64_t columns) {
  Lanes<T> total[Count][ColumnVectors] = {};
  panel_block<T, Rows, Count>(p.depth, a, b, total);
  if (columns < StripColumns<T>) return store_edge(total, c, p.c_row, columns, p.accumulate);
#pragma GCC unroll 8
  for (int r = 0; r < Count; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < ColumnVectors; ++v) {
      T* to = c + r * p.c_row + v * LaneCount<T>;
      store(to, p.accumulate ? load(to) + total[r][v] : total[r][v]);
    }
  }
}

// The last rows, fewer than a strip has: each number of them is a loop of its own.
template <class T, bool Rows, int Count>
void last_panel_rows(const Panels<T>& p, std::int64_t rows, const T* a, const T* b, T* c,
                     std::int64_t columns) {
  if constexpr (Count > 0) {
    if (rows < Count) return last_panel_rows<T, Rows, Count - 1>(p, rows, a, b, c, columns);
    panel_rows<T, Rows, Count>(p, a, b, c, columns);
  }
}

template <class T, bool Rows>
void panel_product_of(const Panels<T>& p) {
  for (std::int64_t n = 0; n < p.n; n += StripColumns<T>) {
    const T* b = p.b + n * p.depth;
    const std::int64_t columns = p.n - n < StripColumns<T> ? p.n - n : StripColumns<T>;
    for (std::int64_t m = 0; m < p.m; m += RowBlock) {
      const T* a = p.a + m * StripRow<T>;
      T* c = p.c + m * p.c_row + n;
      if (p.m - m < RowBlock) {
        last_panel_rows<T, Rows, static_cast<int>(RowBlock) - 1>(p, p.m - m, a, b, c, columns);
      } else {
        panel_rows<T, Rows, static_cast<int>(RowBlock)>(p, a, b, c, columns);
      }
    }
  }
}

template <class T>
void panel_product(const Panels<T>& p) {
  return p.a_as_rows ? panel_product_of<T, true>(p) : panel_product_of<T, false>(p);
}

// A product of its own, with what it packs on the stack.
template <class T>
void product_by_panels(const Product<T>& p) {
  constexpr std::int64_t RowsAtOnce = std::int64_t{6} * RowBlock;  // more would need much stack
  alignas(64) T rows[RowsAtOnce * StripRow<T> + LaneCount<T>];
  alignas(64) T columns[StripColumns<T> * PanelDepth<T>];
  for (std::int64_t k = 0; k < p.k; k += PanelDepth<T>) {
    const std::int64_t depth = p.k - k < PanelDepth<T> ? p.k - k : PanelDepth<T>;
    for (std::int64_t m = 0; m < p.m; m += RowsAtOnce) {
      const std::int64_t count = p.m - m < RowsAtOnce ? p.m - m : RowsAtOnce;
      pack_rows(p.a + m * p.a_row + k * p.a_column, p.a_row, p.a_column, count, depth, rows);
      for (std::int64_t n = 0; n < p.n; n += StripColumns<T>) {
        const std::int64_t width = p.n - n < StripColumns<T> ? p.n - n : StripColumns<T>;
        pack_columns(p.b + k * p.b_row + n * p.b_column, p.b_row, p.b_column, width, depth,
                     columns);
        panel_product<T>({.m = count,
                          .n = width,
                          .depth = depth,
                          .a = rows,
                          .a_as_rows = p.a_column == 1,
                          .b = columns,
                          .c = p.c + m * p.c_row + n,
                          .c_row = p.c_row,
                          .accumulate = p.accumulate || k > 0});
      }
    }
  }
}

template <class T>
constexpr ProductKernels<T> product_kernels() {
  return {.blocks = product_in_blocks<T>,
          .packed = product_by_panels<T>,
          .rows = product_by_rows<T>,
          .dots = product_by_dots<T>,
          .tiny = tiny_products<T>,
          .panels = {.rows = RowBlock,
                     .strip_elements = RowBlock * StripRow<T>,
                     .slack = LaneCount<T>,
                     .columns = StripColumns<T>,
                     .lanes = LaneCount<T>,
                     .depth = PanelDepth<T>,
                     .pack_rows = pack_rows<T>,
                     .pack_columns = pack_columns<T>,
                     .multiply = panel_product<T>,
                     .turn = turn_matrix<T>}};
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
