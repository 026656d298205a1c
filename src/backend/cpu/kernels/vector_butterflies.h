// The steps of Fourier transforms: butterflies of rows. Part of vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/kernels/vector_lanes.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

template <class T>
inline constexpr std::int64_t FourierRow = 2 * LaneCount<T>;

template <class T>
inline void butterfly_of_two(Lanes<T>& a_re, Lanes<T>& a_im, Lanes<T>& b_re, Lanes<T>& b_im) {
  const Lanes<T> re = a_re - b_re;
  const Lanes<T> im = a_im - b_im;
  a_re += b_re;
  a_im += b_im;
  b_re = re;
  b_im = im;
}

// In the order 0, 2, 1, 3 of the results.
template <class T>
inline void butterfly_of_four(Lanes<T>* re, Lanes<T>* im, int a, int b, int c, int d) {
  butterfly_of_two<T>(re[a], im[a], re[c], im[c]);
  butterfly_of_two<T>(re[b], im[b], re[d], im[d]);
  butterfly_of_two<T>(re[a], im[a], re[b], im[b]);
  const Lanes<T> d_re = re[d];  // times -i
  re[d] = im[d];
  im[d] = -d_re;
  butterfly_of_two<T>(re[c], im[c], re[d], im[d]);
}

// Parts j and R - j together: a + b, and a - b turned by a quarter.
template <class T, int R>
inline void butterfly_of_odd(Lanes<T>* re, Lanes<T>* im, const T* turns) {
  constexpr int Half = (R - 1) / 2;
  Lanes<T> a_re[Half], a_im[Half], b_re[Half], b_im[Half];
  Lanes<T> all_re = re[0];
  Lanes<T> all_im = im[0];
#pragma GCC unroll 8
  for (int j = 0; j < Half; ++j) {
    a_re[j] = re[j + 1] + re[R - 1 - j];
    a_im[j] = im[j + 1] + im[R - 1 - j];
    b_re[j] = re[j + 1] - re[R - 1 - j];
    b_im[j] = im[j + 1] - im[R - 1 - j];
    all_re += a_re[j];
    all_im += a_im[j];
  }
  const Lanes<T> first_re = re[0];
  const Lanes<T> first_im = im[0];
  re[0] = all_re;
  im[0] = all_im;
#pragma GCC unroll 8
  for (int k = 1; k <= Half; ++k) {
    Lanes<T> m_re = first_re;
    Lanes<T> m_im = first_im;
    Lanes<T> s_re = {};
    Lanes<T> s_im = {};
#pragma GCC unroll 8
    for (int j = 0; j < Half; ++j) {
      const T cosine = turns[2 * ((j + 1) * k % R)];
      const T sine = turns[2 * ((j + 1) * k % R) + 1];
      m_re += cosine * a_re[j];
      m_im += cosine * a_im[j];
      s_re += sine * b_re[j];
      s_im += sine * b_im[j];
    }
    re[k] = m_re + s_im;
    im[k] = m_im - s_re;
    re[R - k] = m_re - s_im;
    im[R - k] = m_im + s_re;
  }
}

template <class T>
inline void butterfly_of_eight(Lanes<T>* re, Lanes<T>* im) {
  constexpr T Eighth = static_cast<T>(0.70710678118654752440L);
  for (int j = 0; j < 4; ++j) butterfly_of_two<T>(re[j], im[j], re[j + 4], im[j + 4]);
  // The later half times the powers of e^(-πi/4).
  const Lanes<T> re5 = (re[5] + im[5]) * Eighth;
  im[5] = (im[5] - re[5]) * Eighth;
  re[5] = re5;
  const Lanes<T> re6 = re[6];
  re[6] = im[6];
  im[6] = -re6;
  const Lanes<T> re7 = (im[7] - re[7]) * Eighth;
  im[7] = -(im[7] + re[7]) * Eighth;
  re[7] = re7;
  butterfly_of_four<T>(re, im, 0, 1, 2, 3);
  butterfly_of_four<T>(re, im, 4, 5, 6, 7);
}

// Where result k of a butterfly is found.
template <int R>
inline constexpr int butterfly_result(int k) {
  constexpr int Four[4] = {0, 2, 1, 3};
  constexpr int Eight[8] = {0, 4, 2, 6, 1, 5, 3, 7};
  if constexpr (R == 4) return Four[k];
  if constexpr (R == 8) return Eight[k];
  return k;
}

template <class T, int R>
inline void butterfly(Lanes<T>* re, Lanes<T>* im, const T* turns) {
  if constexpr (R == 2) {
    butterfly_of_two<T>(re[0], im[0], re[1], im[1]);
  } else if constexpr (R == 4) {
    butterfly_of_four<T>(re, im, 0, 1, 2, 3);
  } else if constexpr (R == 8) {
    butterfly_of_eight<T>(re, im);
  } else {
    butterfly_of_odd<T, R>(re, im, turns);
  }
}

// Row k of all parts. Turned first, unless they are single rows.
template <class T, int R, bool Turned>
inline void butterfly_row(const T* x, std::int64_t step, const T* roots, const T* turns,
                          Lanes<T>* re, Lanes<T>* im) {
#pragma GCC unroll 16
  for (int j = 0; j < R; ++j) {
    re[j] = load(x + j * step);
    im[j] = load(x + j * step + LaneCount<T>);
    if (Turned && j > 0) {
      const T w_re = roots[2 * (j - 1)];
      const T w_im = roots[2 * (j - 1) + 1];
      const Lanes<T> turned = re[j] * w_re - im[j] * w_im;
      im[j] = re[j] * w_im + im[j] * w_re;
      re[j] = turned;
    }
  }
  butterfly<T, R>(re, im, turns);
}

// Calls put(row, re, im) with every row of a block's result.
template <class T, int R, class Put>
inline void butterfly_rows(const FourierStage<T>& s, const T* data, Put&& put) {
  const std::int64_t step = s.apart * FourierRow<T>;
  for (std::int64_t k = 0; k < s.apart; ++k) {
    Lanes<T> re[R], im[R];
    const T* x = data + k * FourierRow<T>;
    if (s.apart == 1) {
      butterfly_row<T, R, false>(x, step, nullptr, s.turns, re, im);
    } else {
      butterfly_row<T, R, true>(x, step, s.roots + 2 * k * (R - 1), s.turns, re, im);
    }
#pragma GCC unroll 16
    for (int j = 0; j < R; ++j) {
      put(k + j * s.apart, re[butterfly_result<R>(j)], im[butterfly_result<R>(j)]);
    }
  }
}

template <class T, int R>
void butterflies(const FourierStage<T>& s, std::int64_t blocks, T* data) {
  const std::int64_t block = R * s.apart * FourierRow<T>;
  for (std::int64_t b = 0; b < blocks; ++b, data += block) {
    butterfly_rows<T, R>(s, data, [&](std::int64_t row, Lanes<T> re, Lanes<T> im) {
      store(data + row * FourierRow<T>, re);
      store(data + row * FourierRow<T> + LaneCount<T>, im);
    });
  }
}

// Of a large prime: its parts wait in memory.
template <class T>
void butterflies_of_prime(const FourierStage<T>& s, std::int64_t blocks, T* data) {
  constexpr int Most = 128;
  const std::int64_t step = s.apart * FourierRow<T>;
  const std::int64_t half = (s.radix - 1) / 2;
  Lanes<T> a_re[Most / 2], a_im[Most / 2], b_re[Most / 2], b_im[Most / 2];
  for (std::int64_t row = 0; row < blocks * s.apart; ++row) {
    const std::int64_t k = row % s.apart;
    T* x = data + (row / s.apart * s.radix * s.apart + k) * FourierRow<T>;
    const auto part = [&](std::int64_t j, Lanes<T>& re, Lanes<T>& im) {
      const T* w = s.roots + 2 * (k * (s.radix - 1) + j - 1);
      const Lanes<T> x_re = load(x + j * step);
      const Lanes<T> x_im = load(x + j * step + LaneCount<T>);
      re = x_re * w[0] - x_im * w[1];
      im = x_re * w[1] + x_im * w[0];
    };
    const Lanes<T> first_re = load(x);
    const Lanes<T> first_im = load(x + LaneCount<T>);
    Lanes<T> all_re = first_re;
    Lanes<T> all_im = first_im;
    for (std::int64_t j = 0; j < half; ++j) {
      Lanes<T> near_re, near_im, far_re, far_im;
      part(j + 1, near_re, near_im);
      part(s.radix - 1 - j, far_re, far_im);
      a_re[j] = near_re + far_re;
      a_im[j] = near_im + far_im;
      b_re[j] = near_re - far_re;
      b_im[j] = near_im - far_im;
      all_re += a_re[j];
      all_im += a_im[j];
    }
    store(x, all_re);
    store(x + LaneCount<T>, all_im);
    for (std::int64_t out = 1; out <= half; ++out) {
      Lanes<T> m_re = first_re;
      Lanes<T> m_im = first_im;
      Lanes<T> s_re = {};
      Lanes<T> s_im = {};
      std::int64_t at = 0;  // out · j mod radix
      for (std::int64_t j = 0; j < half; ++j) {
        at += out;
        if (at >= s.radix) at -= s.radix;
        m_re += s.turns[2 * at] * a_re[j];
        m_im += s.turns[2 * at] * a_im[j];
        s_re += s.turns[2 * at + 1] * b_re[j];
        s_im += s.turns[2 * at + 1] * b_im[j];
      }
      store(x + out * step, m_re + s_im);
      store(x + out * step + LaneCount<T>, m_im - s_re);
      store(x + (s.radix - out) * step, m_re - s_im);
      store(x + (s.radix - out) * step + LaneCount<T>, m_im + s_re);
    }
  }
}

template <class T>
void run_stage(const FourierStage<T>& s, std::int64_t blocks, T* data) {
  switch (s.radix) {
    case 2: return butterflies<T, 2>(s, blocks, data);
    case 3: return butterflies<T, 3>(s, blocks, data);
    case 4: return butterflies<T, 4>(s, blocks, data);
    case 5: return butterflies<T, 5>(s, blocks, data);
    case 7: return butterflies<T, 7>(s, blocks, data);
    case 8: return butterflies<T, 8>(s, blocks, data);
    case 11: return butterflies<T, 11>(s, blocks, data);
    case 13: return butterflies<T, 13>(s, blocks, data);
    default: return butterflies_of_prime(s, blocks, data);
  }
}

// Parts that fit into the nearest cache are finished one after the other.
template <class T>
void run_stages(const FourierRows<T>& p, std::int64_t last, T* data) {
  constexpr std::int64_t FewRows = 96;
  const FourierStage<T>& s = p.stages[last];
  if (s.radix * s.apart <= FewRows || last == 0) {
    for (std::int64_t i = 0; i <= last; ++i) {
      const FourierStage<T>& inner = p.stages[i];
      run_stage(inner, s.radix * s.apart / (inner.radix * inner.apart), data);
    }
    return;
  }
  for (std::int64_t b = 0; b < s.radix; ++b) {
    run_stages(p, last - 1, data + b * s.apart * FourierRow<T>);
  }
  run_stage(s, 1, data);
}

template <class T>
void fourier_transform(const FourierRows<T>& p, T* data) {
  if (p.count > 0) run_stages(p, p.count - 1, data);
}

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
