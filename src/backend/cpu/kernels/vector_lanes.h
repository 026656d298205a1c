// Vectors of RICCI_VECTOR_BYTES: loads and stores of whole and partial ones. Part of
// vector_kernels_body.h.
#pragma once

namespace ricci::cpu::RICCI_VECTOR_TARGET {
namespace {

template <class T>
struct LanesOf {
  using type __attribute__((vector_size(RICCI_VECTOR_BYTES))) = T;
};
template <class T>
using Lanes = typename LanesOf<T>::type;
template <class T>
inline constexpr int LaneCount = RICCI_VECTOR_BYTES / static_cast<int>(sizeof(T));

template <class T>
inline constexpr bool IsFloat = false;
template <>
inline constexpr bool IsFloat<float> = true;

/// 0, 1, … N - 1, for what needs its numbers at compile time.
template <int... I>
struct Numbers {};
template <int N, int... I>
struct CountTo : CountTo<N - 1, N - 1, I...> {};
template <int... I>
struct CountTo<0, I...> {
  using type = Numbers<I...>;
};

template <class T>
inline Lanes<T> load(const T* from) {
  Lanes<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
inline void store(T* to, Lanes<T> v) {
  __builtin_memcpy(to, &v, sizeof v);
}

/// The first `count` lanes; the others are zero, and their memory is not touched.
template <class T>
inline Lanes<T> load_some(const T* from, int count) {
#if RICCI_VECTOR_BYTES == 64 && defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    return (Lanes<T>)_mm512_maskz_loadu_epi32(static_cast<__mmask16>((1U << count) - 1), from);
  } else {
    return (Lanes<T>)_mm512_maskz_loadu_epi64(static_cast<__mmask8>((1U << count) - 1), from);
  }
#elif RICCI_VECTOR_BYTES == 32 && defined(__AVX2__)
  static constexpr int Window[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
  __m256i mask;
  const auto words = static_cast<std::size_t>(count) * (sizeof(T) / 4);
  __builtin_memcpy(&mask, Window + (8 - words), sizeof mask);
  if constexpr (sizeof(T) == 4) {
    return (Lanes<T>)_mm256_maskload_epi32(reinterpret_cast<const int*>(from), mask);
  } else {
    return (Lanes<T>)_mm256_maskload_epi64(reinterpret_cast<const long long*>(from), mask);
  }
#else
  T held[LaneCount<T>] = {};
  for (int i = 0; i < count; ++i) held[i] = from[i];
  return load(held);
#endif
}

template <class T>
inline void store_some(T* to, Lanes<T> v, int count) {
#if RICCI_VECTOR_BYTES == 64 && defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    _mm512_mask_storeu_epi32(to, static_cast<__mmask16>((1U << count) - 1), (__m512i)v);
  } else {
    _mm512_mask_storeu_epi64(to, static_cast<__mmask8>((1U << count) - 1), (__m512i)v);
  }
#else
  T held[LaneCount<T>];
  store(held, v);
  for (int i = 0; i < count; ++i) to[i] = held[i];
#endif
}

/// The same where all of them is the usual number.
template <class T>
inline Lanes<T> load_count(const T* from, std::int64_t count) {
  return count == LaneCount<T> ? load(from) : load_some(from, static_cast<int>(count));
}
template <class T>
inline void store_count(T* to, Lanes<T> v, std::int64_t count) {
  if (count == LaneCount<T>) {
    store(to, v);
  } else {
    store_some(to, v, static_cast<int>(count));
  }
}

#if RICCI_VECTOR_BYTES == 64 && defined(__AVX512F__)
// Squares of floats are turned by pieces of four: what goes from row to row is left to the loads,
// and only the numbers within a piece to the unit that shuffles, of which there is one.

/// Pieces at `from` of rows i, 4 + i, 8 + i, 12 + i.
inline __m512 load_pieces(const float* from, std::int64_t line, int i) {
  const auto piece = [&](int q) { return _mm_loadu_ps(from + (4 * q + i) * line); };
  __m512 x = _mm512_broadcast_f32x4(piece(0));
  x = _mm512_mask_broadcast_f32x4(x, 0x00f0, piece(1));
  x = _mm512_mask_broadcast_f32x4(x, 0x0f00, piece(2));
  return _mm512_mask_broadcast_f32x4(x, 0xf000, piece(3));
}
inline __m512 lower_halves(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}
inline __m512 upper_halves(__m512 a, __m512 b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

/// Four numbers of each of 16 rows become four vectors.
inline void turn_four(const float* from, std::int64_t row, __m512 (&to)[4]) {
  const __m512 a = load_pieces(from, row, 0);
  const __m512 b = load_pieces(from, row, 1);
  const __m512 c = load_pieces(from, row, 2);
  const __m512 d = load_pieces(from, row, 3);
  to[0] = lower_halves(_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
  to[1] = upper_halves(_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
  to[2] = lower_halves(_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
  to[3] = upper_halves(_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
}
#endif

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
