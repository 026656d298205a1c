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

}  // namespace
}  // namespace ricci::cpu::RICCI_VECTOR_TARGET
