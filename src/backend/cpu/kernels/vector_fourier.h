// What brings complex numbers to rows for a Fourier transform, and away from there. Part of
// vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_fourier_lines.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

template <class T>
void fourier_load(const FourierView<const T>& v, std::int64_t rows, std::int64_t count,
                  const std::int32_t* places, T* data) {
  constexpr int N = LaneCount<T>;
  const int side = neighbours(v);
  if (side != 0 && v.column == 2) {
    const T* from = side > 0 ? v.re : v.im;
    for (std::int64_t j = 0; j < rows; ++j) {
      const ComplexLanes<T> z = load_pairs(from + j * v.row, count);
      put_row(data + places[j] * FourierRow<T>, swapped_if(side < 0, z));
    }
    return;
  }
  if (v.column == 1) {
    for (std::int64_t j = 0; j < rows; ++j) {
      const Lanes<T> re = load_count(v.re + j * v.row, count);
      const Lanes<T> im = v.im == nullptr ? Lanes<T>{} : load_count(v.im + j * v.row, count);
      put_row<T>(data + places[j] * FourierRow<T>, {re, im});
    }
    return;
  }
  std::int64_t j = load_lines(v, rows, count, places, data);
  for (; j < rows; ++j) {
    T* to = data + places[j] * FourierRow<T>;
    for (std::int64_t c = 0; c < N; ++c) {
      const bool there = c < count;
      to[c] = there ? v.re[j * v.row + c * v.column] : T(0);
      to[N + c] = there && v.im != nullptr ? v.im[j * v.row + c * v.column] : T(0);
    }
  }
}

template <class T>
void fourier_store(const T* data, std::int64_t rows, std::int64_t count, T scale,
                   const FourierView<T>& v) {
  constexpr int N = LaneCount<T>;
  const int side = neighbours(v);
  if (v.column == 1 || (side != 0 && v.column == 2)) {
    for (std::int64_t j = 0; j < rows; ++j) {
      ComplexLanes<T> z = get_row(data + j * FourierRow<T>);
      z = {z.re * scale, z.im * scale};
      if (v.column == 2) {
        store_pairs((side > 0 ? v.re : v.im) + j * v.row, swapped_if(side < 0, z), count);
        continue;
      }
      store_count(v.re + j * v.row, z.re, count);
      if (v.im != nullptr) store_count(v.im + j * v.row, z.im, count);
    }
    return;
  }
  std::int64_t j = store_lines(data, rows, count, scale, v);
  for (; j < rows; ++j) {
    const T* from = data + j * FourierRow<T>;
    for (std::int64_t c = 0; c < count; ++c) {
      v.re[j * v.row + c * v.column] = from[c] * scale;
      if (v.im != nullptr) v.im[j * v.row + c * v.column] = from[N + c] * scale;
    }
  }
}

template <class T, int R>
void finish_rows(const FourierStage<T>& s, const T* data, std::int64_t count, T scale,
                 const FourierView<T>& v) {
  const int side = v.column == 2 ? neighbours(v) : 0;
  butterfly_rows<T, R>(s, data, [&](std::int64_t row, Lanes<T> re, Lanes<T> im) {
    const ComplexLanes<T> z{re * scale, im * scale};
    if (side != 0) {
      store_pairs((side > 0 ? v.re : v.im) + row * v.row, swapped_if(side < 0, z), count);
      return;
    }
    store_count(v.re + row * v.row, z.re, count);
    if (v.im != nullptr) store_count(v.im + row * v.row, z.im, count);
  });
}

template <class T>
void fourier_finish(const FourierRows<T>& p, bool joins, T* data, std::int64_t count, T scale,
                    const FourierView<T>& v) {
  const FourierStage<T>& s = p.stages[p.count - 1];
  for (std::int64_t i = 0; !joins && i + 1 < p.count; ++i) {
    run_stage(p.stages[i], p.rows / (p.stages[i].radix * p.stages[i].apart), data);
  }
  if (v.column == 1 || (v.column == 2 && neighbours(v) != 0)) {
    switch (s.radix) {
      case 2: return finish_rows<T, 2>(s, data, count, scale, v);
      case 3: return finish_rows<T, 3>(s, data, count, scale, v);
      case 4: return finish_rows<T, 4>(s, data, count, scale, v);
      case 5: return finish_rows<T, 5>(s, data, count, scale, v);
      case 8: return finish_rows<T, 8>(s, data, count, scale, v);
      default: break;
    }
  }
  run_stage(s, 1, data);
  fourier_store(data, s.radix * s.apart, count, scale, v);
}

template <class T>
void fourier_spread(const FourierSpread<T>& s) {
  for (std::int64_t j = 0; j < s.total; ++j) {
    T* to = s.to + (s.places == nullptr ? j : s.places[j]) * s.apart;
    if (j >= s.given) {
      put_row<T>(to, {Lanes<T>{}, Lanes<T>{}});
      continue;
    }
    const ComplexLanes<T> z = get_row(s.from + j * FourierRow<T>);
    const T w_re = s.factors[2 * j];
    const T w_im = s.factors[2 * j + 1];
    const ComplexLanes<T> turned = {z.re * w_re - z.im * w_im, z.re * w_im + z.im * w_re};
    put_row(to, swapped_if(s.swap, turned));
  }
}

template <class T>
void fourier_twist(const T* data, std::int64_t rows, std::int64_t count, const T* fine,
                   const T* coarse, T* to, std::int64_t apart) {
  constexpr int N = LaneCount<T>;
  for (std::int64_t k = 0; k < rows; k += N, to += apart) {
    Lanes<T> re[N], im[N];
    for (int r = 0; r < N; ++r) {
      if (k + r >= rows) {
        re[r] = im[r] = Lanes<T>{};
        continue;
      }
      const std::int64_t row = k + r;
      const ComplexLanes<T> z = get_row(data + row * FourierRow<T>);
      const ComplexLanes<T> f = get_row(fine + row * FourierRow<T>);
      const T c_re = coarse[2 * row];
      const T c_im = coarse[2 * row + 1];
      const Lanes<T> w_re = f.re * c_re - f.im * c_im;
      const Lanes<T> w_im = f.re * c_im + f.im * c_re;
      re[r] = z.re * w_re - z.im * w_im;
      im[r] = z.re * w_im + z.im * w_re;
    }
    transpose_lanes<T>(re);
    transpose_lanes<T>(im);
    for (std::int64_t c = 0; c < count; ++c) put_row<T>(to + c * FourierRow<T>, {re[c], im[c]});
  }
}

// Of a = Z[k] and b = Z[half - k]: the transforms of the even and the odd numbers are
// (a + conj b) / 2 and -i (a - conj b) / 2; the second is turned by root k.
template <class T>
inline void split_bins(ComplexLanes<T>& a, ComplexLanes<T>& b, Lanes<T> w_re, Lanes<T> w_im) {
  const T half = static_cast<T>(0.5);
  const Lanes<T> e_re = (a.re + b.re) * half;
  const Lanes<T> e_im = (a.im - b.im) * half;
  const Lanes<T> o_re = (a.im + b.im) * half;
  const Lanes<T> o_im = (b.re - a.re) * half;
  const Lanes<T> t_re = o_re * w_re - o_im * w_im;
  const Lanes<T> t_im = o_re * w_im + o_im * w_re;
  a = {e_re + t_re, e_im + t_im};
  b = {e_re - t_re, t_im - e_im};
}

// The way back, twice as large.
template <class T>
inline void join_bins(ComplexLanes<T>& a, ComplexLanes<T>& b, Lanes<T> w_re, Lanes<T> w_im) {
  const Lanes<T> e_re = a.re + b.re;
  const Lanes<T> e_im = a.im - b.im;
  const Lanes<T> d_re = a.re - b.re;
  const Lanes<T> d_im = a.im + b.im;
  const Lanes<T> o_re = d_re * w_re + d_im * w_im;
  const Lanes<T> o_im = d_im * w_re - d_re * w_im;
  a = {e_re - o_im, e_im + o_re};
  b = {e_re + o_im, o_re - e_im};
}

template <class T>
void fourier_split_rows(T* data, std::int64_t half, const T* roots) {
  const ComplexLanes<T> first = get_row(data);
  put_row<T>(data, {first.re + first.im, Lanes<T>{}});
  put_row<T>(data + half * FourierRow<T>, {first.re - first.im, Lanes<T>{}});
  for (std::int64_t k = 1; 2 * k <= half; ++k) {
    ComplexLanes<T> a = get_row(data + k * FourierRow<T>);
    ComplexLanes<T> b = get_row(data + (half - k) * FourierRow<T>);
    split_bins<T>(a, b, Lanes<T>{} + roots[2 * k], Lanes<T>{} + roots[2 * k + 1]);
    put_row(data + (half - k) * FourierRow<T>, b);
    put_row(data + k * FourierRow<T>, a);
  }
}

template <class T>
void fourier_join_rows(const T* from, std::int64_t half, const T* roots, const std::int32_t* places,
                       T* to) {
  const ComplexLanes<T> first = get_row(from);
  const ComplexLanes<T> last = get_row(from + half * FourierRow<T>);
  put_row<T>(to + places[0] * FourierRow<T>, {first.re - last.re, first.re + last.re});
  for (std::int64_t k = 1; 2 * k <= half; ++k) {
    ComplexLanes<T> a = get_row(from + k * FourierRow<T>);
    ComplexLanes<T> b = get_row(from + (half - k) * FourierRow<T>);
    join_bins<T>(a, b, Lanes<T>{} + roots[2 * k], Lanes<T>{} + roots[2 * k + 1]);
    put_row<T>(to + places[half - k] * FourierRow<T>, {b.im, b.re});
    put_row<T>(to + places[k] * FourierRow<T>, {a.im, a.re});
  }
}

// Calls f(a, b, w_re, w_im) on bins k and their mirror images half - k, k in [begin, end), and
// stores what it makes of them elsewhere. Bins 0 and half are left out.
template <class T, class F>
inline void for_mirrored(const T* from, std::int64_t half, const T* cosines, const T* sines,
                         std::int64_t begin, std::int64_t end, T* to, F&& f) {
  constexpr int N = LaneCount<T>;
  std::int64_t k = begin == 0 ? 1 : begin;
  const bool in_vectors = end - k >= N;
  while (in_vectors && k < end) {
    // The last vector begins earlier and makes some bins once more, to the same bits.
    if (k + N > end) k = end - N;
    const std::int64_t mirror = half - k - N + 1;
    ComplexLanes<T> a = load_pairs(from + 2 * k, N);
    ComplexLanes<T> b = load_pairs(from + 2 * mirror, N);
    b = {backwards<T>(b.re, AllLanes<T>()), backwards<T>(b.im, AllLanes<T>())};
    f(a, b, load(cosines + k), load(sines + k));
    b = {backwards<T>(b.re, AllLanes<T>()), backwards<T>(b.im, AllLanes<T>())};
    store_pairs(to + 2 * mirror, b, N);
    store_pairs(to + 2 * k, a, N);  // the middle is its own image: this is the one that stays
    k += N;
  }
  for (; k < end; ++k) {
    ComplexLanes<T> a = load_pairs(from + 2 * k, 1);
    ComplexLanes<T> b = load_pairs(from + 2 * (half - k), 1);
    f(a, b, Lanes<T>{} + cosines[k], Lanes<T>{} + sines[k]);
    store_pairs(to + 2 * (half - k), b, 1);
    store_pairs(to + 2 * k, a, 1);
  }
}

template <class T>
void fourier_split_line(const T* z, std::int64_t half, const T* cosines, const T* sines,
                        std::int64_t begin, std::int64_t end, T scale, T* bins) {
  if (begin == 0) {
    bins[0] = (z[0] + z[1]) * scale;
    bins[2 * half] = (z[0] - z[1]) * scale;
    bins[1] = bins[2 * half + 1] = 0;
  }
  for_mirrored<T>(z, half, cosines, sines, begin, end, bins,
                  [&](ComplexLanes<T>& a, ComplexLanes<T>& b, Lanes<T> w_re, Lanes<T> w_im) {
                    split_bins<T>(a, b, w_re, w_im);
                    a = {a.re * scale, a.im * scale};
                    b = {b.re * scale, b.im * scale};
                  });
}

template <class T>
void fourier_join_line(const T* bins, std::int64_t half, const T* cosines, const T* sines,
                       std::int64_t begin, std::int64_t end, T* z) {
  if (begin == 0) {
    z[0] = bins[0] + bins[2 * half];
    z[1] = bins[0] - bins[2 * half];
  }
  for_mirrored<T>(bins, half, cosines, sines, begin, end, z,
                  [](ComplexLanes<T>& a, ComplexLanes<T>& b, Lanes<T> w_re, Lanes<T> w_im) {
                    join_bins<T>(a, b, w_re, w_im);
                  });
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
