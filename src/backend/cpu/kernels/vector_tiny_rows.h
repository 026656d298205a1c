// Products of small matrices, a few rows of one, or a few whole ones, to a vector. Part of
// vector_kernels_body.h.
#pragma once

#include "backend/cpu/kernels/vector_fourier_lines.h"
#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/kernels/vector_lanes.h"

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

#if RICCI_VECTOR_BYTES == 64 && defined(__AVX512F__)
#define RICCI_HAS_PATTERNS 1
using Pattern = __m512i;
template <class T>
inline Lanes<T> permuted(Lanes<T> v, Pattern p) {
  if constexpr (sizeof(T) == 4) return (Lanes<T>)_mm512_permutexvar_epi32(p, (__m512i)v);
  return (Lanes<T>)_mm512_permutexvar_epi64(p, (__m512i)v);
}
template <class T>
inline auto some_lanes(std::int64_t count) {
  if constexpr (sizeof(T) == 4) return static_cast<__mmask16>((1U << count) - 1);
  if constexpr (sizeof(T) == 8) return static_cast<__mmask8>((1U << count) - 1);
}
template <class T>
inline Lanes<T> load_lanes(const T* from, __mmask16 lanes) {
  if constexpr (sizeof(T) == 4) return (Lanes<T>)_mm512_maskz_loadu_epi32(lanes, from);
  return (Lanes<T>)_mm512_maskz_loadu_epi64(static_cast<__mmask8>(lanes), from);
}
template <class T>
inline void store_lanes(T* to, Lanes<T> v, __mmask16 lanes) {
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_epi32(to, lanes, (__m512i)v);
  } else {
    _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(lanes), (__m512i)v);
  }
}
#elif RICCI_VECTOR_BYTES == 32 && defined(__AVX2__)
#define RICCI_HAS_PATTERNS 1
using Pattern = __m256i;
template <class T>
inline Lanes<T> permuted(Lanes<T> v, Pattern p) {
  return (Lanes<T>)_mm256_permutevar8x32_epi32((__m256i)v, p);
}
template <class T>
inline __m256i some_lanes(std::int64_t count) {
  static constexpr int Window[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  __m256i mask;
  const auto words = static_cast<std::size_t>(count) * (sizeof(T) / 4);
  __builtin_memcpy(&mask, Window + (8 - words), sizeof mask);
  return mask;
}
template <class T>
inline Lanes<T> load_lanes(const T* from, __m256i lanes) {
  return (Lanes<T>)_mm256_maskload_epi32(reinterpret_cast<const int*>(from), lanes);
}
template <class T>
inline void store_lanes(T* to, Lanes<T> v, __m256i lanes) {
  _mm256_maskstore_epi32(reinterpret_cast<int*>(to), lanes, (__m256i)v);
}
#else
#define RICCI_HAS_PATTERNS 0
#endif

#if RICCI_HAS_PATTERNS
// Lane l is to be lane[l] of another vector.
template <class T>
inline Pattern pattern_of(const std::int32_t* lanes) {
  constexpr int Words = RICCI_VECTOR_BYTES / 4;
  std::int32_t words[Words] = {};
  for (int l = 0; l < LaneCount<T>; ++l) {
    if constexpr (sizeof(T) == 4) {
      words[l] = lanes[l];
    } else if constexpr (Words == 16) {
      words[2 * l] = lanes[l];
    } else {
      words[2 * l] = 2 * lanes[l];
      words[2 * l + 1] = 2 * lanes[l] + 1;
    }
  }
  Pattern p;
  __builtin_memcpy(&p, words, sizeof p);
  return p;
}

// C's numbers in the order of memory are a vector's lanes: `matrices` of them, or `rows` of one.
// For each k, the lanes' factors are permuted from what is loaded of A and of B.
template <class T>
struct TinyRowsPlan {
  static constexpr int Most = TinyProducts<T>::Most;
  std::int64_t matrices = 1;
  std::int64_t rows = 0;
  std::int64_t a_step = 0;  // from k to k: 0 when all of them are in one vector
  std::int64_t b_step = 0;
  std::int64_t b_numbers = 0;
  Pattern a[Most];
  Pattern b[Most];

  // False where matrices lie in another way.
  bool fits(const TinyProducts<T>& p) {
    constexpr std::int64_t N = LaneCount<T>;
    const bool rising = p.a.row >= 0 && p.a.column >= 0 && p.b.row >= 0 && p.b.column >= 0;
    if (p.complex || !rising || (p.n > 1 && p.c.column != 1) || (p.m > 1 && p.c.row != p.n)) {
      return false;
    }
    const std::int64_t a_all = (p.m - 1) * p.a.row + (p.k - 1) * p.a.column + 1;
    const std::int64_t b_row = (p.n - 1) * p.b.column + 1;
    const std::int64_t b_all = b_row + (p.k - 1) * p.b.row;
    if (p.n > N || b_row > N) return false;
    b_step = b_all <= N ? 0 : p.b.row;
    b_numbers = b_all <= N ? b_all : b_row;
    const std::int64_t a_row = (p.k - 1) * p.a.column + 1;
    a_step = a_row <= N ? 0 : p.a.column;
    rows = N / p.n < p.m ? N / p.n : p.m;
    while (rows > 1 && a_numbers(p, rows, 1) > N) --rows;
    if (rows < p.m && rows < 2) return false;
    const bool dense = a_all == p.m * p.k && p.a.batch == a_all && b_all == p.k * p.n &&
                       p.b.batch == b_all && p.c.batch == p.m * p.n;
    const std::int64_t largest = largest_of(a_all, b_all, p.m * p.n);
    if (dense && 2 * largest <= N) matrices = N / largest;
    make_patterns(p);
    return true;
  }

  static std::int64_t largest_of(std::int64_t x, std::int64_t y, std::int64_t z) {
    const std::int64_t larger = x > y ? x : y;
    return larger > z ? larger : z;
  }
  [[nodiscard]] std::int64_t a_numbers(const TinyProducts<T>& p, std::int64_t of_rows,
                                       std::int64_t of_matrices) const {
    const std::int64_t columns = a_step == 0 ? p.k : 1;
    return (of_matrices - 1) * p.a.batch + (of_rows - 1) * p.a.row + (columns - 1) * p.a.column + 1;
  }

  void make_patterns(const TinyProducts<T>& p) {
    for (std::int64_t k = 0; k < p.k; ++k) {
      std::int32_t of_a[LaneCount<T>] = {};
      std::int32_t of_b[LaneCount<T>] = {};
      for (std::int64_t l = 0; l < matrices * rows * p.n; ++l) {
        const std::int64_t matrix = l / (rows * p.n);
        const std::int64_t i = l / p.n % rows;
        const std::int64_t j = l % p.n;
        of_a[l] = static_cast<std::int32_t>(matrix * p.a.batch + i * p.a.row +
                                            (a_step == 0 ? k * p.a.column : 0));
        of_b[l] = static_cast<std::int32_t>(matrix * p.b.batch + j * p.b.column +
                                            (b_step == 0 ? k * p.b.row : 0));
      }
      a[k] = pattern_of<T>(of_a);
      b[k] = pattern_of<T>(of_b);
    }
  }
};

// `groups` times plan.matrices; OneLoad: all of A and of B that a vector needs are one load each.
template <class T, int Depth, bool OneLoad>
void tiny_rows_of(const TinyRowsPlan<T>& plan, const TinyProducts<T>& p, std::int64_t matrices,
                  std::int64_t groups) {
  Pattern of_a[Depth], of_b[Depth];
  for (int k = 0; k < Depth; ++k) {
    of_a[k] = plan.a[k];
    of_b[k] = plan.b[k];
  }
  const auto b_lanes = some_lanes<T>(plan.b_numbers + (matrices - 1) * p.b.batch);
  const std::int64_t last = (p.m - 1) % plan.rows + 1;  // rows of the last vector
  const auto a_lanes = some_lanes<T>(plan.a_numbers(p, plan.rows, matrices));
  const auto c_lanes = some_lanes<T>(matrices * plan.rows * p.n);
  const auto last_a_lanes = some_lanes<T>(plan.a_numbers(p, last, matrices));
  const auto last_c_lanes = some_lanes<T>(matrices * last * p.n);
  const T* a = p.a.data;
  const T* b = p.b.data;
  T* c = p.c.data;
  for (std::int64_t group = 0; group < groups; ++group) {
    Lanes<T> y[Depth];
    y[0] = load_lanes(b, b_lanes);
    for (int k = 1; k < Depth; ++k) {
      y[k] = OneLoad ? y[0] : load_lanes(b + k * plan.b_step, b_lanes);
    }
    for (int k = 0; k < Depth; ++k) y[k] = permuted<T>(y[k], of_b[k]);
    const auto multiply = [&](std::int64_t i, const auto& from_lanes, const auto& to_lanes) {
      const T* from = a + i * p.a.row;
      const Lanes<T> x = load_lanes(from, from_lanes);
      // From zero, as everywhere: a first term of -0 is no sum.
      Lanes<T> total = Lanes<T>{} + permuted<T>(x, of_a[0]) * y[0];
      for (int k = 1; k < Depth; ++k) {
        const Lanes<T> column = OneLoad ? x : load_lanes(from + k * plan.a_step, from_lanes);
        total += permuted<T>(column, of_a[k]) * y[k];
      }
      T* to = c + i * p.n;
      store_lanes(to, p.accumulate ? load_lanes(to, to_lanes) + total : total, to_lanes);
    };
    std::int64_t i = 0;
    for (; i + plan.rows < p.m; i += plan.rows) multiply(i, a_lanes, c_lanes);
    multiply(i, last_a_lanes, last_c_lanes);
    a += matrices * p.a.batch;
    b += matrices * p.b.batch;
    c += matrices * p.c.batch;
  }
}

template <class T, int Depth>
void tiny_products_by_rows(const TinyRowsPlan<T>& plan, const TinyProducts<T>& p) {
  const auto run = [&](const TinyProducts<T>& part, std::int64_t matrices, std::int64_t groups) {
    if (plan.a_step == 0 && plan.b_step == 0) {
      tiny_rows_of<T, Depth, true>(plan, part, matrices, groups);
    } else {
      tiny_rows_of<T, Depth, false>(plan, part, matrices, groups);
    }
  };
  const std::int64_t groups = p.count / plan.matrices;
  const std::int64_t done = groups * plan.matrices;
  if (groups > 0) run(p, plan.matrices, groups);
  if (done == p.count) return;
  TinyProducts<T> rest = p;
  rest.a.data += done * p.a.batch;
  rest.b.data += done * p.b.batch;
  rest.c.data += done * p.c.batch;
  run(rest, p.count - done, 1);
}

template <class T, int... I>
inline bool tiny_products_by_rows(const TinyProducts<T>& p, Numbers<I...>) {
  TinyRowsPlan<T> plan;
  if (!plan.fits(p)) return false;
  using Run = void (*)(const TinyRowsPlan<T>&, const TinyProducts<T>&);
  constexpr Run ByDepth[] = {tiny_products_by_rows<T, I + 1>...};
  ByDepth[p.k - 1](plan, p);
  return true;
}
#else
template <class T, int... I>
inline bool tiny_products_by_rows(const TinyProducts<T>&, Numbers<I...>) {
  return false;
}
#endif

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
