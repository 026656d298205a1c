// Fourier transforms of short lines: a line, or a few of them, seen as `lanes` rows is transformed
// down its columns in registers, turned, and transformed along its rows. Part of
// vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_fourier.h"
#include "backend/cpu/kernels/vector_fourier_lines.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

// Four by four: result k is at 4 · (k mod 4) + k / 4, both in the order of butterfly_of_four.
template <class T>
[[gnu::always_inline]] inline void butterfly_of_sixteen(Lanes<T>* re, Lanes<T>* im) {
  constexpr T Cosines[10] = {1,
                             static_cast<T>(0.92387953251128675613L),
                             static_cast<T>(0.70710678118654752440L),
                             static_cast<T>(0.38268343236508977173L),
                             0,
                             0,
                             static_cast<T>(-0.70710678118654752440L),
                             0,
                             0,
                             static_cast<T>(-0.92387953251128675613L)};
  constexpr T Sines[10] = {0,
                           static_cast<T>(-0.38268343236508977173L),
                           static_cast<T>(-0.70710678118654752440L),
                           static_cast<T>(-0.92387953251128675613L),
                           -1,
                           0,
                           static_cast<T>(-0.70710678118654752440L),
                           0,
                           0,
                           static_cast<T>(0.38268343236508977173L)};
  constexpr int Order[4] = {0, 2, 1, 3};
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) butterfly_of_four<T>(re, im, j, j + 4, j + 8, j + 12);
#pragma GCC unroll 4
  for (int s = 1; s < 4; ++s) {
#pragma GCC unroll 4
    for (int j = 1; j < 4; ++j) {
      const int at = 4 * s + j;
      const T c = Cosines[Order[s] * j];
      const T w = Sines[Order[s] * j];
      const Lanes<T> turned = re[at] * c - im[at] * w;
      im[at] = re[at] * w + im[at] * c;
      re[at] = turned;
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < 16; s += 4) butterfly_of_four<T>(re, im, s, s + 1, s + 2, s + 3);
}

template <class T, int R>
[[gnu::always_inline]] inline void short_butterfly(Lanes<T>* re, Lanes<T>* im) {
  if constexpr (R == 16) {
    butterfly_of_sixteen<T>(re, im);
  } else {
    butterfly<T, R>(re, im, nullptr);
  }
}
template <int R>
inline constexpr int short_result(int k) {
  constexpr int Order[4] = {0, 2, 1, 3};
  if constexpr (R == 16) return 4 * Order[k % 4] + Order[k / 4];
  return butterfly_result<R>(k);
}

#if RICCI_VECTOR_BYTES == 64 && defined(__AVX512F__)
#define RICCI_HAS_SHORT_LINES 1
inline Lanes<float> two_halves(const float* x, const float* y) {
  const __m512 low = _mm512_castps256_ps512(_mm256_loadu_ps(x));
  return (Lanes<float>)_mm512_insertf32x8(low, _mm256_loadu_ps(y), 1);
}
inline Lanes<double> two_halves(const double* x, const double* y) {
  const __m512d low = _mm512_castpd256_pd512(_mm256_loadu_pd(x));
  return (Lanes<double>)_mm512_insertf64x4(low, _mm256_loadu_pd(y), 1);
}
// Four numbers of each of four lines, of which there are `count`.
inline Lanes<float> four_quarters(const float* from, std::int64_t line, std::int64_t count) {
  const auto quarter = [&](int i) { return _mm_loadu_ps(count > i ? from + i * line : from); };
  const __m512 low = _mm512_insertf32x4(_mm512_castps128_ps512(quarter(0)), quarter(1), 1);
  return (Lanes<float>)_mm512_insertf32x4(_mm512_insertf32x4(low, quarter(2), 2), quarter(3), 3);
}
inline constexpr bool HasQuarters = true;
#elif RICCI_VECTOR_BYTES == 32 && defined(__AVX2__)
#define RICCI_HAS_SHORT_LINES 1
inline Lanes<float> four_quarters(const float*, std::int64_t, std::int64_t) {
  return Lanes<float>{};
}
inline constexpr bool HasQuarters = false;
inline Lanes<float> two_halves(const float* x, const float* y) {
  const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(x));
  return (Lanes<float>)_mm256_insertf128_ps(low, _mm_loadu_ps(y), 1);
}
inline Lanes<double> two_halves(const double* x, const double* y) {
  const __m256d low = _mm256_castpd128_pd256(_mm_loadu_pd(x));
  return (Lanes<double>)_mm256_insertf128_pd(low, _mm_loadu_pd(y), 1);
}
#else
#define RICCI_HAS_SHORT_LINES 0
#endif

#if RICCI_HAS_SHORT_LINES
// Columns of each of lanes / Columns lines, side by side. Lines that are missing repeat the first.
template <class T, int Columns>
inline ComplexLanes<T> load_columns(const T* from, std::int64_t line, std::int64_t count) {
  constexpr int N = LaneCount<T>;
  Lanes<T> a, b;
  if constexpr (Columns == N) {
    a = load(from);
    b = load(from + N);
  } else if constexpr (2 * Columns == N) {
    a = load(from);
    b = load(count > 1 ? from + line : from);
  } else if constexpr (8 * Columns == N) {
    a = four_quarters(from, line, count);
    b = four_quarters(count > 4 ? from + 4 * line : from, line, count - 4);
  } else {
    a = two_halves(from, count > 1 ? from + line : from);
    b = two_halves(count > 2 ? from + 2 * line : from, count > 3 ? from + 3 * line : from);
  }
  return {evens<T>(a, b, AllLanes<T>()), odds<T>(a, b, AllLanes<T>())};
}

// Down the columns, turned by the roots; lane c becomes row c.
template <class T, class Load>
[[gnu::always_inline]] inline void first_rows(const T* roots, const Load& load_row, Lanes<T>* re,
                                              Lanes<T>* im) {
  constexpr int N = LaneCount<T>;
  Lanes<T> x_re[N], x_im[N];
#pragma GCC unroll 16
  for (int j = 0; j < N; ++j) {
    const ComplexLanes<T> z = load_row(j);
    x_re[j] = z.re;
    x_im[j] = z.im;
  }
  short_butterfly<T, N>(x_re, x_im);
  const T scale = roots[0];
  re[0] = x_re[0] * scale;
  im[0] = x_im[0] * scale;
#pragma GCC unroll 16
  for (int k = 1; k < N; ++k) {
    const int at = short_result<N>(k);
    const ComplexLanes<T> w = get_row(roots + k * FourierRow<T>);
    re[k] = x_re[at] * w.re - x_im[at] * w.im;
    im[k] = x_re[at] * w.im + x_im[at] * w.re;
  }
  transpose_lanes<T>(re);
  transpose_lanes<T>(im);
}

template <class T, int Columns, bool Swap>
void short_lines(const FourierLines<T>& p, const T* from, T* to) {
  constexpr int N = LaneCount<T>;
  const std::int64_t count = p.count;
  const std::int64_t line = p.from_line;
  Lanes<T> re[N], im[N];
  first_rows<T>(
      p.roots,
      [&](int j) {
        return swapped_if(Swap, load_columns<T, Columns>(from + 2 * j * Columns, line, count));
      },
      re, im);
  for (int l = 0; l < N / Columns; ++l) {
    if (l >= count) break;
    Lanes<T>* x_re = re + l * Columns;
    Lanes<T>* x_im = im + l * Columns;
    short_butterfly<T, Columns>(x_re, x_im);
    T* out = to + l * p.to_line;
#pragma GCC unroll 16
    for (int k = 0; k < Columns; ++k) {
      const int at = short_result<Columns>(k);
      store_pairs(out + 2 * N * k, swapped_if(Swap, ComplexLanes<T>{x_re[at], x_im[at]}), N);
    }
  }
}

// More columns than lanes: the rows' transform works in `data`.
template <class T>
void longer_line(const FourierLines<T>& p, const T* from, T* to, T* data) {
  constexpr int N = LaneCount<T>;
  const std::int64_t columns = p.rows.rows;
  for (std::int64_t c = 0; c < columns; c += N) {
    const std::int64_t count = columns - c < N ? columns - c : N;
    Lanes<T> re[N], im[N];
    first_rows<T>(
        p.roots + c * FourierRow<T>,
        [&](int j) { return swapped_if(p.swap, load_pairs(from + 2 * (j * columns + c), count)); },
        re, im);
    for (std::int64_t i = 0; i < count; ++i) {
      put_row<T>(data + p.places[c + i] * FourierRow<T>, {re[i], im[i]});
    }
  }
  const FourierView<T> out =
      p.swap ? FourierView<T>{to + 1, to, 2 * N, 2} : FourierView<T>{to, to + 1, 2 * N, 2};
  fourier_finish(p.rows, false, data, N, T(1), out);
}

template <class T, int Columns>
void short_lines(const FourierLines<T>& p, const T* from, T* to) {
  if (p.swap) {
    short_lines<T, Columns, true>(p, from, to);
  } else {
    short_lines<T, Columns, false>(p, from, to);
  }
}

template <class T>
void fourier_short(const FourierLines<T>& p, const T* from, T* to, T* data) {
  constexpr int N = LaneCount<T>;
  if (p.rows.rows == N) return short_lines<T, N>(p, from, to);
  if (2 * p.rows.rows == N) return short_lines<T, N / 2>(p, from, to);
  if constexpr (N >= 8) {
    if (4 * p.rows.rows == N) return short_lines<T, N / 4>(p, from, to);
  }
  if constexpr (HasQuarters && IsFloat<T>) {
    if (8 * p.rows.rows == N) return short_lines<T, N / 8>(p, from, to);
  }
  longer_line(p, from, to, data);
}
template <class T>
constexpr auto short_transform() {
  return fourier_short<T>;
}
template <class T>
constexpr std::int64_t fewest_columns() {
  return HasQuarters && IsFloat<T> ? LaneCount<T> / 8
         : LaneCount<T> >= 8       ? LaneCount<T> / 4
                                   : LaneCount<T> / 2;
}
#else
template <class T>
constexpr std::int64_t fewest_columns() {
  return 0;
}
template <class T>
constexpr void (*short_transform())(const FourierLines<T>&, const T*, T*, T*) {
  return nullptr;
}
#endif

template <class T>
constexpr FourierKernels<T> fourier_kernels() {
  return {.lanes = LaneCount<T>,
          .transform = fourier_transform<T>,
          .load = fourier_load<T>,
          .store = fourier_store<T>,
          .finish = fourier_finish<T>,
          .fewest_columns = fewest_columns<T>(),
          .lines = short_transform<T>(),
          .spread = fourier_spread<T>,
          .twist = fourier_twist<T>,
          .split_rows = fourier_split_rows<T>,
          .join_rows = fourier_join_rows<T>,
          .split_line = fourier_split_line<T>,
          .join_line = fourier_join_line<T>};
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
