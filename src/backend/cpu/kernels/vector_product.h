// Matrix products without packing: small ones, and those of a few rows. Part of
// vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_narrow.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

// Registers: RowBlock · ColumnVectors totals, a row of B and a broadcast element of A.
constexpr int RowBlock = 6;
constexpr int ColumnVectors = RICCI_VECTOR_BYTES == 64 ? 4 : 2;

// A block of `Rows` rows and `Vectors` vectors of columns, the last of which may have only `last`
// lanes (Partial).
template <class T, int Rows, int Vectors, bool Partial>
void block(const Product<T>& p, const T* a, const T* b, T* c, int last) {
  Lanes<T> total[Rows][Vectors] = {};
  for (std::int64_t k = 0; k < p.k; ++k) {
    Lanes<T> row[Vectors];
    for (int v = 0; v < Vectors; ++v) {
      const T* from = b + v * LaneCount<T>;
      row[v] = Partial && v == Vectors - 1 ? load_some(from, last) : load(from);
    }
    for (int r = 0; r < Rows; ++r) {
      const T x = a[r * p.a_row];
      for (int v = 0; v < Vectors; ++v) total[r][v] += x * row[v];
    }
    a += p.a_column;
    b += p.b_row;
  }
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) {
      T* to = c + r * p.c_row + v * LaneCount<T>;
      if (Partial && v == Vectors - 1) {
        Lanes<T> sum = total[r][v];
        if (p.accumulate) sum = load_some(to, last) + sum;
        store_some(to, sum, last);
      } else {
        store(to, p.accumulate ? load(to) + total[r][v] : total[r][v]);
      }
    }
  }
}

// Rows of the next block when so many are left: the last two share theirs, because one of a row or
// two would wait for its sums.
inline int next_rows(std::int64_t left) {
  if (left >= 2 * RowBlock || left == RowBlock) return RowBlock;
  return static_cast<int>(left > RowBlock ? (left + 1) / 2 : left);
}

template <class T, int Vectors, bool Partial>
void block_of_rows(const Product<T>& p, int rows, const T* a, const T* b, T* c, int last) {
  switch (rows) {
    case 1: return block<T, 1, Vectors, Partial>(p, a, b, c, last);
    case 2: return block<T, 2, Vectors, Partial>(p, a, b, c, last);
    case 3: return block<T, 3, Vectors, Partial>(p, a, b, c, last);
    case 4: return block<T, 4, Vectors, Partial>(p, a, b, c, last);
    case 5: return block<T, 5, Vectors, Partial>(p, a, b, c, last);
    default: return block<T, 6, Vectors, Partial>(p, a, b, c, last);
  }
}

// All rows of a few columns. One vector alone takes twice as many rows at a time: the sums of fewer
// would wait for each other.
template <class T, int Vectors, bool Partial>
void narrow_blocks(const Product<T>& p, std::int64_t n, int last) {
  constexpr int Twice = 2 * RowBlock;
  const T* a = p.a;
  const T* b = p.b + n;
  T* c = p.c + n;
  std::int64_t m = p.m;
  if constexpr (Vectors == 1) {
    for (; m >= Twice; m -= Twice, a += Twice * p.a_row, c += Twice * p.c_row) {
      block<T, Twice, 1, Partial>(p, a, b, c, last);
    }
  }
  while (m > 0) {
    const int rows = next_rows(m);
    block_of_rows<T, Vectors, Partial>(p, rows, a, b, c, last);
    m -= rows;
    a += rows * p.a_row;
    c += rows * p.c_row;
  }
}

// The last columns, fewer than a block has: two vectors at a time.
template <class T>
void last_columns(const Product<T>& p, std::int64_t n) {
  constexpr std::int64_t Lane = LaneCount<T>;
  for (; p.n - n >= 2 * Lane; n += 2 * Lane) narrow_blocks<T, 2, false>(p, n, 0);
  const int left = static_cast<int>(p.n - n);
  if (left > Lane) return narrow_blocks<T, 2, true>(p, n, left - LaneCount<T>);
  if (left == Lane) return narrow_blocks<T, 1, false>(p, n, 0);
  if (left > 0) narrow_blocks<T, 1, true>(p, n, left);
}

template <class T>
void product_in_blocks(const Product<T>& p) {
  constexpr std::int64_t Whole = ColumnVectors * LaneCount<T>;
  const std::int64_t whole = p.n / Whole * Whole;
  const auto block_at = [&](std::int64_t m, int rows, std::int64_t n) {
    block_of_rows<T, ColumnVectors, false>(p, rows, p.a + m * p.a_row, p.b + n,
                                           p.c + m * p.c_row + n, 0);
  };
  if (p.k <= 8) {  // C is most of the traffic: write it in order
    for (std::int64_t m = 0; m < p.m;) {
      const int rows = next_rows(p.m - m);
      for (std::int64_t n = 0; n < whole; n += Whole) block_at(m, rows, n);
      m += rows;
    }
  } else {
    for (std::int64_t n = 0; n < whole; n += Whole) {
      for (std::int64_t m = 0; m < p.m;) {
        const int rows = next_rows(p.m - m);
        block_at(m, rows, n);
        m += rows;
      }
    }
  }
  last_columns(p, whole);
}

// C += A[:, k .. k + Depth) B[k .. k + Depth, :] for a few rows and some columns of C.
template <class T, class From, int Rows, int Depth>
void add_rows(const Product<T, typename From::Stored>& p, std::int64_t k, bool fresh) {
  T x[Rows][Depth];
  for (int r = 0; r < Rows; ++r) {
    for (int d = 0; d < Depth; ++d) x[r][d] = p.a[r * p.a_row + (k + d) * p.a_column];
  }
  const typename From::Stored* b = p.b + k * p.b_row;
  std::int64_t n = 0;
  for (; n + LaneCount<T> <= p.n; n += LaneCount<T>) {
    Lanes<T> total[Rows] = {};
    for (int d = 0; d < Depth; ++d) {
      const Lanes<T> row = From::load(b + d * p.b_row + n);
      for (int r = 0; r < Rows; ++r) total[r] += x[r][d] * row;
    }
    for (int r = 0; r < Rows; ++r) {
      T* c = p.c + r * p.c_row + n;
      store(c, fresh ? total[r] : load(c) + total[r]);
    }
  }
  const int last = static_cast<int>(p.n - n);
  if (last == 0) return;
  Lanes<T> total[Rows] = {};
  for (int d = 0; d < Depth; ++d) {
    const Lanes<T> row = From::load_some(b + d * p.b_row + n, last);
    for (int r = 0; r < Rows; ++r) total[r] += x[r][d] * row;
  }
  for (int r = 0; r < Rows; ++r) {
    T* c = p.c + r * p.c_row + n;
    store_some(c, fresh ? total[r] : load_some(c, last) + total[r], last);
  }
}

template <class T, int Rows, class From = AsIs<T>>
void product_of_rows(const Product<T, typename From::Stored>& p) {
  std::int64_t k = 0;
  bool fresh = !p.accumulate;
  for (; k + 8 <= p.k; k += 8, fresh = false) add_rows<T, From, Rows, 8>(p, k, fresh);
  for (; k + 2 <= p.k; k += 2, fresh = false) add_rows<T, From, Rows, 2>(p, k, fresh);
  if (k < p.k) add_rows<T, From, Rows, 1>(p, k, fresh);
}

template <class T, class From>
void product_of_few_rows(const Product<T, typename From::Stored>& p) {
  switch (p.m) {
    case 1: return product_of_rows<T, 1, From>(p);
    case 2: return product_of_rows<T, 2, From>(p);
    case 3: return product_of_rows<T, 3, From>(p);
    default: return product_of_rows<T, 4, From>(p);
  }
}

// More rows than have room for their totals take turns with a stretch of a few rows of B, which
// stays in the nearest cache until all of them have met it.
template <class T, class From = AsIs<T>>
void product_by_rows(const Product<T, typename From::Stored>& p) {
  constexpr std::int64_t Together = 4;
  constexpr std::int64_t Depth = 8;
  constexpr std::int64_t Stretch = 4096 / static_cast<std::int64_t>(sizeof(T));
  if (p.m <= Together) return product_of_few_rows<T, From>(p);
  auto part = p;
  for (std::int64_t k = 0; k < p.k; k += Depth) {
    part.k = p.k - k < Depth ? p.k - k : Depth;
    part.accumulate = p.accumulate || k > 0;
    for (std::int64_t n = 0; n < p.n; n += Stretch) {
      part.n = p.n - n < Stretch ? p.n - n : Stretch;
      part.b = p.b + k * p.b_row + n;
      for (std::int64_t m = 0; m < p.m; m += Together) {
        part.m = p.m - m < Together ? p.m - m : Together;
        part.a = p.a + m * p.a_row + k * p.a_column;
        part.c = p.c + m * p.c_row + n;
        product_of_few_rows<T, From>(part);
      }
    }
  }
}

template <int Width, class T, int... I>
inline Lanes<T> moved_down(Lanes<T> v, Numbers<I...>) {
  return __builtin_shufflevector(v, v, ((I + Width) % LaneCount<T>)...);
}

// Of all lanes, half of them at a time.
template <class T, int Width = LaneCount<T> / 2>
inline T sum_of_lanes(Lanes<T> v) {
  const Lanes<T> both = v + moved_down<Width, T>(v, typename CountTo<LaneCount<T>>::type{});
  if constexpr (Width > 1) {
    return sum_of_lanes<T, Width / 2>(both);
  } else {
    return both[0];
  }
}

template <class T, class From, int Rows, int Columns>
void dots_of(const Product<T, typename From::Stored>& p, std::int64_t n) {
  Lanes<T> total[Rows][Columns] = {};
  const typename From::Stored* b = p.b + n * p.b_column;
  std::int64_t k = 0;
  for (; k + LaneCount<T> <= p.k; k += LaneCount<T>) {
    for (int j = 0; j < Columns; ++j) {
      const Lanes<T> column = From::load(b + j * p.b_column + k);
      for (int r = 0; r < Rows; ++r) total[r][j] += load(p.a + r * p.a_row + k) * column;
    }
  }
  if (const int last = static_cast<int>(p.k - k); last > 0) {
    for (int j = 0; j < Columns; ++j) {
      const Lanes<T> column = From::load_some(b + j * p.b_column + k, last);
      for (int r = 0; r < Rows; ++r) total[r][j] += load_some(p.a + r * p.a_row + k, last) * column;
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int j = 0; j < Columns; ++j) {
      T* c = p.c + r * p.c_row + n + j;
      const T sum = sum_of_lanes<T>(total[r][j]);
      *c = p.accumulate ? *c + sum : sum;
    }
  }
}

template <class T, int Rows, class From>
void dots_of_rows(const Product<T, typename From::Stored>& p) {
  constexpr int Columns = Rows == 1 ? 6 : 3;
  std::int64_t n = 0;
  for (; n + Columns <= p.n; n += Columns) dots_of<T, From, Rows, Columns>(p, n);
  for (; n < p.n; ++n) dots_of<T, From, Rows, 1>(p, n);
}

template <class T, class From>
void dots_of_few_rows(const Product<T, typename From::Stored>& p) {
  switch (p.m) {
    case 1: return dots_of_rows<T, 1, From>(p);
    case 2: return dots_of_rows<T, 2, From>(p);
    case 3: return dots_of_rows<T, 3, From>(p);
    default: return dots_of_rows<T, 4, From>(p);
  }
}

// `few(part, first row)` for a few rows and columns at a time: columns stay in a near cache until
// all rows have met them.
template <class P, class F>
void in_few_rows(const P& p, const F& few) {
  constexpr std::int64_t Together = 4;
  constexpr std::int64_t Columns = 12;
  if (p.m <= Together) return few(p, std::int64_t{0});
  P part = p;
  for (std::int64_t n = 0; n < p.n; n += Columns) {
    part.n = p.n - n < Columns ? p.n - n : Columns;
    part.b = p.b + n * p.b_column;
    for (std::int64_t m = 0; m < p.m; m += Together) {
      part.m = p.m - m < Together ? p.m - m : Together;
      part.a = p.a + m * p.a_row;
      part.c = p.c + m * p.c_row + n;
      few(part, m);
    }
  }
}

template <class T, class From = AsIs<T>>
void product_by_dots(const Product<T, typename From::Stored>& p) {
  in_few_rows(p, [](const auto& few, std::int64_t) { dots_of_few_rows<T, From>(few); });
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
