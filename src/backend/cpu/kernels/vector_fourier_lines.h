// Complex numbers as vectors of real and of imaginary parts, and lines of them turned into rows and
// back. Part of vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_butterflies.h"
#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/kernels/vector_lanes.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

// Every second number of two vectors, and two vectors' numbers in turns.
template <class T, int... I>
inline Lanes<T> evens(Lanes<T> a, Lanes<T> b, Numbers<I...>) {
  return __builtin_shufflevector(a, b, (2 * I)...);
}
template <class T, int... I>
inline Lanes<T> odds(Lanes<T> a, Lanes<T> b, Numbers<I...>) {
  return __builtin_shufflevector(a, b, (2 * I + 1)...);
}
template <class T, int... I>
inline Lanes<T> lower_turns(Lanes<T> a, Lanes<T> b, Numbers<I...>) {
  return __builtin_shufflevector(a, b, (I % 2 == 0 ? I / 2 : LaneCount<T> + I / 2)...);
}
template <class T, int... I>
inline Lanes<T> upper_turns(Lanes<T> a, Lanes<T> b, Numbers<I...>) {
  constexpr int Half = LaneCount<T> / 2;
  return __builtin_shufflevector(a, b, (Half + (I % 2 == 0 ? I / 2 : LaneCount<T> + I / 2))...);
}
template <class T, int... I>
inline Lanes<T> backwards(Lanes<T> a, Numbers<I...>) {
  return __builtin_shufflevector(a, a, (LaneCount<T> - 1 - I)...);
}
template <class T>
using AllLanes = typename CountTo<LaneCount<T>>::type;

template <class T>
struct ComplexLanes {
  Lanes<T> re;
  Lanes<T> im;
};

// `count` interleaved numbers.
template <class T>
inline ComplexLanes<T> load_pairs(const T* from, std::int64_t count) {
  constexpr int N = LaneCount<T>;
  Lanes<T> a, b;
  if (count == N) {
    a = load(from);
    b = load(from + N);
  } else {
    const int numbers = static_cast<int>(2 * count);
    a = load_some(from, numbers < N ? numbers : N);
    b = numbers > N ? load_some(from + N, numbers - N) : Lanes<T>{};
  }
  return {evens<T>(a, b, AllLanes<T>()), odds<T>(a, b, AllLanes<T>())};
}

template <class T>
inline void store_pairs(T* to, ComplexLanes<T> z, std::int64_t count) {
  constexpr int N = LaneCount<T>;
  const Lanes<T> a = lower_turns<T>(z.re, z.im, AllLanes<T>());
  const Lanes<T> b = upper_turns<T>(z.re, z.im, AllLanes<T>());
  if (count == N) {
    store(to, a);
    store(to + N, b);
    return;
  }
  const int numbers = static_cast<int>(2 * count);
  store_some(to, a, numbers < N ? numbers : N);
  if (numbers > N) store_some(to + N, b, numbers - N);
}

// Rows become columns: each round deals two halves of the vectors in turns.
template <class T>
inline void transpose_lanes(Lanes<T>* v) {
  constexpr int N = LaneCount<T>;
#pragma GCC unroll 4
  for (int round = 1; round < N; round *= 2) {
    Lanes<T> dealt[N];
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; ++i) {
      dealt[2 * i] = lower_turns<T>(v[i], v[i + N / 2], AllLanes<T>());
      dealt[2 * i + 1] = upper_turns<T>(v[i], v[i + N / 2], AllLanes<T>());
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) v[i] = dealt[i];
  }
}

// Are the parts of a number side by side? 1: real before imaginary, -1: behind it.
template <class T>
inline int neighbours(const FourierView<T>& v) {
  if (v.im == v.re + 1) return 1;
  return v.im != nullptr && v.im == v.re - 1 ? -1 : 0;
}

template <class T>
inline void put_row(T* to, ComplexLanes<T> z) {
  store(to, z.re);
  store(to + LaneCount<T>, z.im);
}
template <class T>
inline ComplexLanes<T> get_row(const T* from) {
  return {load(from), load(from + LaneCount<T>)};
}

template <class T>
inline ComplexLanes<T> swapped_if(bool swap, ComplexLanes<T> z) {
  return swap ? ComplexLanes<T>{z.im, z.re} : z;
}

#if RICCI_VECTOR_BYTES == 64 && defined(__AVX512F__)
// Squares of lines by pieces of four floats: what goes from line to line is left to the loads and
// stores, and only the numbers within a piece to the unit that shuffles, of which there is one.

inline void store_pieces(float* to, std::int64_t line, int i, __m512 x) {
  _mm_storeu_ps(to + i * line, _mm512_castps512_ps128(x));
  _mm_storeu_ps(to + (4 + i) * line, _mm512_extractf32x4_ps(x, 1));
  _mm_storeu_ps(to + (8 + i) * line, _mm512_extractf32x4_ps(x, 2));
  _mm_storeu_ps(to + (12 + i) * line, _mm512_extractf32x4_ps(x, 3));
}
// Two numbers of each of 16 lines.
inline void load_two(const float* from, std::int64_t line, ComplexLanes<float>& first,
                     ComplexLanes<float>& second) {
  constexpr int Even = 0x88;
  constexpr int Odd = 0xdd;
  const __m512 a = load_pieces(from, line, 0);
  const __m512 b = load_pieces(from, line, 1);
  const __m512 c = load_pieces(from, line, 2);
  const __m512 d = load_pieces(from, line, 3);
  const auto part = [&](__m512 x, __m512 y) {
    return ComplexLanes<float>{(Lanes<float>)_mm512_shuffle_ps(x, y, Even),
                               (Lanes<float>)_mm512_shuffle_ps(x, y, Odd)};
  };
  first = part(lower_halves(a, b), lower_halves(c, d));
  second = part(upper_halves(a, b), upper_halves(c, d));
}
inline void store_two(float* to, std::int64_t line, const ComplexLanes<float>& first,
                      const ComplexLanes<float>& second) {
  const auto lower = [](const ComplexLanes<float>& z) {
    return _mm512_unpacklo_ps((__m512)z.re, (__m512)z.im);
  };
  const auto upper = [](const ComplexLanes<float>& z) {
    return _mm512_unpackhi_ps((__m512)z.re, (__m512)z.im);
  };
  store_pieces(to, line, 0, lower_halves(lower(first), lower(second)));
  store_pieces(to, line, 1, upper_halves(lower(first), lower(second)));
  store_pieces(to, line, 2, lower_halves(upper(first), upper(second)));
  store_pieces(to, line, 3, upper_halves(upper(first), upper(second)));
}

inline constexpr bool HasPieces = true;
#else
inline constexpr bool HasPieces = false;
inline void load_two(const float*, std::int64_t, ComplexLanes<float>&, ComplexLanes<float>&) {}
inline void store_two(float*, std::int64_t, const ComplexLanes<float>&,
                      const ComplexLanes<float>&) {}
#endif
template <class T>
constexpr bool by_pieces = HasPieces && IsFloat<T>;

// Fewer rows than these are moved one number at a time.
constexpr std::int64_t FewestLines = 3;

// `rows` numbers of each of `count` lines, which adjoin; all there are lanes for when `Whole`.
template <class T, bool Whole>
inline void load_square(const FourierView<const T>& v, bool pairs, std::int64_t rows,
                        std::int64_t count, const std::int32_t* places, T* data) {
  constexpr int N = LaneCount<T>;
  const int side = neighbours(v);
  Lanes<T> re[N], im[N];
  for (int c = 0; c < N; ++c) {
    if (!Whole && c >= count) {
      re[c] = im[c] = Lanes<T>{};
    } else if (pairs) {
      const T* from = (side > 0 ? v.re : v.im) + c * v.column;
      const ComplexLanes<T> z = swapped_if(side < 0, load_pairs(from, Whole ? N : rows));
      re[c] = z.re;
      im[c] = z.im;
    } else {
      const auto row = [&](const T* of) {
        return Whole ? load(of + c * v.column) : load_count(of + c * v.column, rows);
      };
      re[c] = row(v.re);
      im[c] = v.im == nullptr ? Lanes<T>{} : row(v.im);
    }
  }
  transpose_lanes<T>(re);
  transpose_lanes<T>(im);
  for (int r = 0; r < N; ++r) {
    if (Whole || r < rows) put_row<T>(data + places[r] * FourierRow<T>, {re[r], im[r]});
  }
}

// Lines whose numbers adjoin, a square of them at a time; gives the first row that is left.
template <class T>
std::int64_t load_lines(const FourierView<const T>& v, std::int64_t rows, std::int64_t count,
                        const std::int32_t* places, T* data) {
  constexpr int N = LaneCount<T>;
  const bool pairs = neighbours(v) != 0 && v.row == 2;
  if (!pairs && !(v.row == 1)) return 0;
  FourierView<const T> at = v;
  std::int64_t j = 0;
  if constexpr (by_pieces<T>) {
    const bool swap = neighbours(v) < 0;
    for (; pairs && count == N && j + 2 <= rows; j += 2) {
      ComplexLanes<T> first, second;
      load_two((swap ? v.im : v.re) + j * v.row, v.column, first, second);
      put_row(data + places[j] * FourierRow<T>, swapped_if(swap, first));
      put_row(data + places[j + 1] * FourierRow<T>, swapped_if(swap, second));
    }
    if (j > 0) return j;
  }
  for (; j + FewestLines <= rows; j += N) {
    if (count == N && j + N <= rows) {
      load_square<T, true>(at, pairs, N, N, places + j, data);
    } else {
      load_square<T, false>(at, pairs, rows - j < N ? rows - j : N, count, places + j, data);
    }
    at.re += N * v.row;
    if (at.im != nullptr) at.im += N * v.row;
  }
  return j < rows ? j : rows;
}

template <class T, bool Whole>
inline void store_square(const T* data, bool pairs, std::int64_t rows, std::int64_t count, T scale,
                         const FourierView<T>& v) {
  constexpr int N = LaneCount<T>;
  const int side = neighbours(v);
  Lanes<T> re[N], im[N];
  for (int r = 0; r < N; ++r) {
    ComplexLanes<T> z = {};
    if (Whole || r < rows) z = get_row(data + r * FourierRow<T>);
    re[r] = z.re * scale;
    im[r] = z.im * scale;
  }
  transpose_lanes<T>(re);
  transpose_lanes<T>(im);
  for (int c = 0; c < N; ++c) {
    if (!Whole && c >= count) continue;
    if (pairs) {
      T* to = (side > 0 ? v.re : v.im) + c * v.column;
      store_pairs(to, swapped_if(side < 0, ComplexLanes<T>{re[c], im[c]}), Whole ? N : rows);
    } else {
      store_count(v.re + c * v.column, re[c], Whole ? N : rows);
      if (v.im != nullptr) store_count(v.im + c * v.column, im[c], Whole ? N : rows);
    }
  }
}

// Rows of 16 lines, two at a time; gives the first that is left.
template <class T>
std::int64_t store_by_pieces(const T* data, std::int64_t rows, T scale, const FourierView<T>& v) {
  constexpr int N = LaneCount<T>;
  const bool swap = neighbours(v) < 0;
  T* const to = swap ? v.im : v.re;
  const auto row = [&](std::int64_t r) {
    const ComplexLanes<T> z = get_row(data + r * FourierRow<T>);
    return swapped_if(swap, ComplexLanes<T>{z.re * scale, z.im * scale});
  };
  // Whole lines of the cache at a time, which wait in turns until their pieces have arrived.
  constexpr std::int64_t Together = 8;
  alignas(64) T waiting[2][N * 2 * Together];
  const auto send = [&](std::int64_t first) {
    const T* from = waiting[first / Together % 2];
    for (int c = 0; c < N; ++c) {
      store(to + first * 2 + c * v.column, load(from + c * 2 * Together));
    }
  };
  std::int64_t j = 0;
  for (; j + Together <= rows; j += Together) {
    for (std::int64_t r = 0; r < Together; r += 2) {
      store_two(waiting[j / Together % 2] + 2 * r, 2 * Together, row(j + r), row(j + r + 1));
    }
    if (j > 0) send(j - Together);
  }
  if (j > 0) send(j - Together);
  for (; j + 2 <= rows; j += 2) store_two(to + j * 2, v.column, row(j), row(j + 1));
  return j;
}

template <class T>
std::int64_t store_lines(const T* data, std::int64_t rows, std::int64_t count, T scale,
                         const FourierView<T>& v) {
  constexpr int N = LaneCount<T>;
  const bool pairs = neighbours(v) != 0 && v.row == 2;
  if (!pairs && !(v.row == 1)) return 0;
  FourierView<T> at = v;
  std::int64_t j = 0;
  if constexpr (by_pieces<T>) {
    if (pairs && count == N) j = store_by_pieces(data, rows, scale, v);
    if (j > 0) return j;
  }
  for (; j + FewestLines <= rows; j += N, data += N * FourierRow<T>) {
    if (count == N && j + N <= rows) {
      store_square<T, true>(data, pairs, N, N, scale, at);
    } else {
      store_square<T, false>(data, pairs, rows - j < N ? rows - j : N, count, scale, at);
    }
    at.re += N * v.row;
    if (at.im != nullptr) at.im += N * v.row;
  }
  return j < rows ? j : rows;
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
