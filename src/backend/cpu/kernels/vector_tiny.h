// Products of many small matrices, one to a lane. Part of vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_fourier_lines.h"
#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/kernels/vector_lanes.h"
#include "backend/cpu/kernels/vector_tiny_rows.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

// Numbers of the largest matrix there is room for.
template <class T>
inline constexpr std::int64_t TinySpan = 2 * TinyProducts<T>::Most * TinyProducts<T>::Most;

/// Matrices as vectors, one lane to a matrix: [i, j] at i · row + j · column, in vectors.
template <class T>
struct TinyRows {
  T* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 0;
  [[nodiscard]] T* at(std::int64_t i, std::int64_t j) const {
    return data + (i * row + j * column) * LaneCount<T>;
  }
};

#if RICCI_VECTOR_BYTES == 64 && defined(__AVX512F__)
// Four numbers of 16 lines that are `line` apart become four vectors, and back; `mask` says which
// of the four are touched.
inline __m512 load_masked_pieces(const float* from, std::int64_t line, int i, __mmask8 mask) {
  const auto piece = [&](int q) { return _mm_maskz_loadu_ps(mask, from + (4 * q + i) * line); };
  const __m512 low = _mm512_insertf32x4(_mm512_castps128_ps512(piece(0)), piece(1), 1);
  return _mm512_insertf32x4(_mm512_insertf32x4(low, piece(2), 2), piece(3), 3);
}
inline void turn_few(const float* from, std::int64_t line, int count, __m512 (&to)[4]) {
  const auto mask = static_cast<__mmask8>((1U << count) - 1);
  const __m512 a = load_masked_pieces(from, line, 0, mask);
  const __m512 b = load_masked_pieces(from, line, 1, mask);
  const __m512 c = load_masked_pieces(from, line, 2, mask);
  const __m512 d = load_masked_pieces(from, line, 3, mask);
  to[0] = lower_halves(_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
  to[1] = upper_halves(_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
  to[2] = lower_halves(_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
  to[3] = upper_halves(_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
}
inline void turn_four_in(const float* from, std::int64_t line, float* to) {
  __m512 v[4];
  turn_four(from, line, v);
  for (int i = 0; i < 4; ++i) _mm512_storeu_ps(to + 16 * i, v[i]);
}
inline void turn_few_in(const float* from, std::int64_t line, int count, float* to) {
  __m512 v[4];
  turn_few(from, line, count, v);
  for (int i = 0; i < count; ++i) _mm512_storeu_ps(to + 16 * i, v[i]);
}
inline void turn_out(const float* from, std::int64_t line, int count, float* to) {
  __m512 v[4] = {};
  for (int i = 0; i < count; ++i) v[i] = _mm512_loadu_ps(from + 16 * i);
  const __m512 pieces[4] = {
      lower_halves(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpacklo_ps(v[2], v[3])),
      upper_halves(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpacklo_ps(v[2], v[3])),
      lower_halves(_mm512_unpackhi_ps(v[0], v[1]), _mm512_unpackhi_ps(v[2], v[3])),
      upper_halves(_mm512_unpackhi_ps(v[0], v[1]), _mm512_unpackhi_ps(v[2], v[3]))};
  if (count == 4) {
    for (int i = 0; i < 4; ++i) store_pieces(to, line, i, pieces[i]);
    return;
  }
  const auto mask = static_cast<__mmask8>((1U << count) - 1);
  for (int i = 0; i < 4; ++i) {
    _mm_mask_storeu_ps(to + i * line, mask, _mm512_castps512_ps128(pieces[i]));
    _mm_mask_storeu_ps(to + (4 + i) * line, mask, _mm512_extractf32x4_ps(pieces[i], 1));
    _mm_mask_storeu_ps(to + (8 + i) * line, mask, _mm512_extractf32x4_ps(pieces[i], 2));
    _mm_mask_storeu_ps(to + (12 + i) * line, mask, _mm512_extractf32x4_ps(pieces[i], 3));
  }
}
#else
inline void turn_four_in(const float*, std::int64_t, float*) {}
inline void turn_few_in(const float*, std::int64_t, int, float*) {}
inline void turn_out(const float*, std::int64_t, int, float*) {}
#endif

template <class T>
constexpr bool in_fours = HasPieces && sizeof(T) == 4;

// Numbers [0, span) of `count` lines become vectors.
template <class T>
void lines_to_lanes(const T* from, std::int64_t line, std::int64_t span, std::int64_t count,
                    T* to) {
  constexpr int N = LaneCount<T>;
  if constexpr (in_fours<T>) {
    if (count == N) {
      const auto* x = reinterpret_cast<const float*>(from);
      auto* y = reinterpret_cast<float*>(to);
      if (span < 4) return turn_few_in(x, line, static_cast<int>(span), y);
      for (std::int64_t e = 0; e + 4 <= span; e += 4) turn_four_in(x + e, line, y + e * N);
      if (span % 4 != 0) turn_four_in(x + span - 4, line, y + (span - 4) * N);
      return;
    }
  }
  for (std::int64_t e = 0; e < span; e += N) {
    const std::int64_t numbers = span - e < N ? span - e : N;
    Lanes<T> v[N];
    for (int c = 0; c < N; ++c) {
      v[c] = c < count ? load_count(from + c * line + e, numbers) : Lanes<T>{};
    }
    transpose_lanes<T>(v);
    for (std::int64_t i = 0; i < numbers; ++i) store(to + (e + i) * N, v[i]);
  }
}

template <class T>
void lanes_to_lines(const T* from, std::int64_t line, std::int64_t span, std::int64_t count,
                    T* to) {
  constexpr int N = LaneCount<T>;
  if constexpr (in_fours<T>) {
    if (count == N) {
      const auto* x = reinterpret_cast<const float*>(from);
      auto* y = reinterpret_cast<float*>(to);
      if (span < 4) return turn_out(x, line, static_cast<int>(span), y);
      for (std::int64_t e = 0; e + 4 <= span; e += 4) turn_out(x + e * N, line, 4, y + e);
      if (span % 4 != 0) turn_out(x + (span - 4) * N, line, 4, y + span - 4);
      return;
    }
  }
  for (std::int64_t e = 0; e < span; e += N) {
    const std::int64_t numbers = span - e < N ? span - e : N;
    Lanes<T> v[N];
    for (int i = 0; i < N; ++i) v[i] = i < numbers ? load(from + (e + i) * N) : Lanes<T>{};
    transpose_lanes<T>(v);
    for (std::int64_t c = 0; c < count; ++c) store_count(to + c * line + e, v[c], numbers);
  }
}

/// Numbers from a matrix's first to its last; 0 when one lies before the first.
template <class T>
std::int64_t tiny_span(const TinyMatrices<T>& x, std::int64_t rows, std::int64_t columns,
                       int parts) {
  if ((rows > 1 && x.row < 0) || (columns > 1 && x.column < 0)) return 0;
  return (rows - 1) * x.row + (columns - 1) * x.column + parts;
}

// `count` matrices, from the first one at `x`, in `room`.
template <class T>
TinyRows<const T> tiny_load(const TinyMatrices<const T>& x, std::int64_t rows, std::int64_t columns,
                            int parts, std::int64_t count, T* room) {
  constexpr int N = LaneCount<T>;
  const std::int64_t span = tiny_span(x, rows, columns, parts);
  if (x.batch != 0 && x.batch != 1 && span > 0 && span <= TinySpan<T>) {
    lines_to_lanes(x.data, x.batch, span, count, room);
    return {room, x.row, x.column};
  }
  T* to = room;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (int p = 0; p < parts; ++p, to += N) {
        const T* from = x.data + i * x.row + j * x.column + p;
        if (x.batch == 0) {
          store(to, Lanes<T>{} + *from);
        } else if (x.batch == 1) {
          store(to, load_count(from, count));
        } else {
          for (std::int64_t c = 0; c < N; ++c) to[c] = c < count ? from[c * x.batch] : T(0);
        }
      }
    }
  }
  return {room, columns * parts, parts};
}

// The way back, for results that lie in `room` row by row, or as in memory when that is dense.
template <class T>
struct TinyResult {
  TinyMatrices<T> to;
  std::int64_t rows;
  std::int64_t columns;
  int parts;

  [[nodiscard]] bool is_dense() const {
    return tiny_span(to, rows, columns, parts) == rows * columns * parts && to.batch != 1;
  }
  [[nodiscard]] TinyRows<T> in(T* room) const {
    if (is_dense()) return {room, to.row, to.column};
    return {room, columns * parts, parts};
  }
  void store_from(const T* room, std::int64_t count) const {
    constexpr int N = LaneCount<T>;
    if (is_dense()) return lanes_to_lines(room, to.batch, rows * columns * parts, count, to.data);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        for (int p = 0; p < parts; ++p, room += N) {
          T* at = to.data + i * to.row + j * to.column + p;
          if (to.batch == 1) {
            store_count(at, load(room), count);
          } else {
            for (std::int64_t c = 0; c < count; ++c) at[c * to.batch] = room[c];
          }
        }
      }
    }
  }
};

// C [rows, Columns] = A [rows, depth] B.
template <class T, int Columns>
void tiny_multiply(std::int64_t rows, std::int64_t depth, const TinyRows<const T>& a,
                   const TinyRows<const T>& b, const TinyRows<T>& c) {
  for (std::int64_t i = 0; i < rows; ++i) {
    Lanes<T> total[Columns] = {};
    for (std::int64_t k = 0; k < depth; ++k) {
      const Lanes<T> x = load(a.at(i, k));
      for (int j = 0; j < Columns; ++j) total[j] += x * load(b.at(k, j));
    }
    for (int j = 0; j < Columns; ++j) store(c.at(i, j), total[j]);
  }
}

// The same of complex numbers, whose imaginary parts follow the real ones.
template <class T, int Columns>
void tiny_multiply_complex(std::int64_t rows, std::int64_t depth, const TinyRows<const T>& a,
                           const TinyRows<const T>& b, const TinyRows<T>& c) {
  for (std::int64_t i = 0; i < rows; ++i) {
    Lanes<T> re[Columns] = {};
    Lanes<T> im[Columns] = {};
    for (std::int64_t k = 0; k < depth; ++k) {
      const ComplexLanes<T> x = get_row(a.at(i, k));
      for (int j = 0; j < Columns; ++j) {
        const ComplexLanes<T> y = get_row(b.at(k, j));
        re[j] += x.re * y.re;
        re[j] -= x.im * y.im;
        im[j] += x.re * y.im;
        im[j] += x.im * y.re;
      }
    }
    for (int j = 0; j < Columns; ++j) put_row<T>(c.at(i, j), {re[j], im[j]});
  }
}

template <class T>
using TinyMultiply = void (*)(std::int64_t, std::int64_t, const TinyRows<const T>&,
                              const TinyRows<const T>&, const TinyRows<T>&);
template <class T, int... I>
inline TinyMultiply<T> tiny_multiply_of(std::int64_t columns, bool complex, Numbers<I...>) {
  constexpr TinyMultiply<T> Plain[] = {tiny_multiply<T, I + 1>...};
  constexpr TinyMultiply<T> Complex[] = {tiny_multiply_complex<T, I + 1>...};
  return complex ? Complex[columns - 1] : Plain[columns - 1];
}

template <class T>
void tiny_products(const TinyProducts<T>& p) {
  constexpr std::int64_t N = LaneCount<T>;
  using Sizes = typename CountTo<TinyProducts<T>::Most>::type;
  if (tiny_products_by_rows(p, Sizes())) return;
  const int parts = p.complex ? 2 : 1;
  const TinyMultiply<T> multiply = tiny_multiply_of<T>(p.n, p.complex, Sizes());
  alignas(64) T room_a[TinySpan<T> * N];
  alignas(64) T room_b[TinySpan<T> * N];
  alignas(64) T room_c[TinySpan<T> * N];
  alignas(64) T before[TinySpan<T> * N];
  TinyMatrices<const T> a = p.a;
  TinyMatrices<const T> b = p.b;
  TinyResult<T> result{p.c, p.m, p.n, parts};
  TinyRows<const T> x, y;
  for (std::int64_t first = 0; first < p.count; first += N) {
    const std::int64_t count = p.count - first < N ? p.count - first : N;
    if (first == 0 || a.batch != 0) x = tiny_load(a, p.m, p.k, parts, count, room_a);
    if (first == 0 || b.batch != 0) y = tiny_load(b, p.k, p.n, parts, count, room_b);
    const TinyRows<T> z = result.in(room_c);
    multiply(p.m, p.k, x, y, z);
    if (p.accumulate) {
      const TinyMatrices<T>& c = result.to;
      const TinyRows<const T> old =
          tiny_load<T>({c.data, c.batch, c.row, c.column}, p.m, p.n, parts, count, before);
      for (std::int64_t i = 0; i < p.m; ++i) {
        for (std::int64_t j = 0; j < p.n; ++j) {
          for (std::int64_t e = 0; e < parts * N; e += N) {
            store(z.at(i, j) + e, load(old.at(i, j) + e) + load(z.at(i, j) + e));
          }
        }
      }
    }
    result.store_from(room_c, count);
    a.data += count * a.batch;
    b.data += count * b.batch;
    result.to.data += count * result.to.batch;
  }
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
