// Numbers in CUDA C++: vectors in memory, small floats, casts, whole numbers, random words, and
// reductions over teams of threads.
#include <array>

#include "backend/cuda/codegen/prelude.h"

namespace ricci::cuda {

std::span<const Snippet> number_snippets() {
  static constexpr auto All = std::to_array<Snippet>({
      {"Infinity NotANumber", R"(
#define Infinity __longlong_as_double(0x7ff0000000000000LL)
#define NotANumber __longlong_as_double(0x7ff8000000000000LL)
)"},
      {"Pack", R"(
// Neighbours in memory, read and written at once.
template <class T, int N>
struct __align__(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T at[N];
};
)"},
      {"report", R"(
// The first fault stays.
__device__ __noinline__ void report(ricci_fault* fault, unsigned kind, i64 value, i64 limit,
                                    unsigned origin) {
  if (atomicCAS(&fault->kind, 0u, kind) == 0u) {
    fault->value = value;
    fault->limit = limit;
    fault->origin = origin;
  }
}
)"},
      {"must_end", R"(
// Has a kernel met a fault, or does the host want an end?
__device__ inline bool must_end(const ricci_fault* fault) {
  if (*(const volatile unsigned*)&fault->kind != 0u) return true;
  return fault->stop != nullptr && *fault->stop != 0u;
}
)"},
      {"f16 to_f16 as_f16", R"(
struct f16 {
  unsigned short bits;
};
__device__ inline float to_float(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ inline f16 to_f16(float x) {
  f16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
__device__ inline float as_f16(float x) { return to_float(to_f16(x)); }
)"},
      {"bf16 to_bf16 as_bf16 cut_to_bf16", R"(
struct bf16 {
  unsigned short bits;
};
__device__ inline float to_float(bf16 x) { return __uint_as_float(unsigned(x.bits) << 16); }
// Rounded, the bits are the upper half of a float's: the instruction for two has it so at once.
__device__ inline float as_bf16(float x) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x), "f"(0.0f));
  return __uint_as_float(pair);
}
// Of what is rounded already.
__device__ inline bf16 cut_to_bf16(float x) {
  return {(unsigned short)(__float_as_uint(x) >> 16)};
}
__device__ inline bf16 to_bf16(float x) { return cut_to_bf16(as_bf16(x)); }
)"},
      {"lane_of", R"(
// The upper half of a float's bits is one.
template <int N>
__device__ inline float lane_of(const Pack<bf16, N>& pack, int j) {
  unsigned pair;
  memcpy(&pair, &pack.at[j / 2 * 2], 4);
  return __uint_as_float(j % 2 != 0 ? pair & 0xffff0000u : pair << 16);
}
)"},
      {"rounded_bf16", R"(
// Neighbours, two rounded at a time.
template <int N>
__device__ inline Pack<bf16, N> rounded_bf16(const float (&x)[N]) {
  Pack<bf16, N> y;
#pragma unroll
  for (int j = 0; j < N; j += 2) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x[j + 1]), "f"(x[j]));
    memcpy(&y.at[j], &pair, 4);
  }
  return y;
}
)"},
      {"rounded_f16", R"(
template <int N>
__device__ inline Pack<f16, N> rounded_f16(const float (&x)[N]) {
  Pack<f16, N> y;
#pragma unroll
  for (int j = 0; j < N; j += 2) {
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x[j + 1]), "f"(x[j]));
    memcpy(&y.at[j], &pair, 4);
  }
  return y;
}
)"},
      {"picked_lane", R"(
// Which of the neighbours from `first` on is number x; -1: none.
__device__ inline int picked_lane(i64 x, i64 first) {
  const u64 lane = u64(x) - u64(first);
  return lane < 64 ? int(lane) : -1;
}
)"},
      {"rounded_to_odd", R"(
// Inexact results get an odd last digit, so that rounding them again is rounding once.
__device__ inline float rounded_to_odd(double x) {
  const float y = float(x);
  if (double(y) == x || x != x || fabs(x) == __longlong_as_double(0x7ff0000000000000LL)) return y;
  unsigned bits = __float_as_uint(y);
  if (fabs(double(y)) > fabs(x)) bits -= 1;
  return __uint_as_float(bits | 1u);
}
)"},
      {"Limits saturated", R"(
template <class T> struct Limits;
template <> struct Limits<i8> { static const int low = -128, high = 127, digits = 7; };
template <> struct Limits<u8> { static const int low = 0, high = 255, digits = 8; };
template <> struct Limits<short> { static const int low = -32768, high = 32767, digits = 15; };
template <> struct Limits<int> {
  static const int low = -2147483647 - 1, high = 2147483647, digits = 31;
};
template <> struct Limits<unsigned> {
  static const unsigned low = 0, high = 4294967295u;
  static const int digits = 32;
};
template <> struct Limits<i64> {
  static const i64 low = -9223372036854775807LL - 1, high = 9223372036854775807LL;
  static const int digits = 63;
};
// Toward zero; what is too large becomes the largest number, and NaN 0.
template <class T, class F>
__device__ inline T saturated(F x) {
  if (x != x) return 0;
  if (x <= F(Limits<T>::low)) return Limits<T>::low;
  if (x >= F(1ULL << (Limits<T>::digits - 1)) * F(2)) return Limits<T>::high;
  return T(x);
}
)"},
      {"larger smaller", R"(
// NaN if either is.
template <class T>
__device__ inline T larger(T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; }
template <class T>
__device__ inline T smaller(T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; }
__device__ inline float larger(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ inline float smaller(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
)"},
      {"quotient", R"(
template <class T>
__device__ inline T quotient(T a, T b, ricci_fault* fault, unsigned origin) {
  if (b == 0) {
    report(fault, 2, 0, 0, origin);
    return 0;
  }
  return b == T(-1) && T(-1) < T(0) ? T(u64(0) - u64(a)) : T(a / b);
}
)"},
      {"remainder", R"(
template <class T>
__device__ inline T remainder(T a, T b, ricci_fault* fault, unsigned origin) {
  if (b == 0) {
    report(fault, 3, 0, 0, origin);
    return 0;
  }
  return b == T(-1) && T(-1) < T(0) ? T(0) : T(a % b);
}
)"},
      {"power", R"(
template <class T>
__device__ inline T power(T a, T b, ricci_fault* fault, unsigned origin) {
  if (b < 0) {
    report(fault, 4, i64(b), 0, origin);
    return 0;
  }
  u64 result = 1;
  u64 square = u64(a);
  for (u64 left = u64(b); left != 0; left >>= 1) {
    if (left & 1) result *= square;
    square *= square;
  }
  return T(result);
}
)"},
      {"shift_left shift_right", R"(
template <class T>
__device__ inline T shift_left(T a, T b) {
  return b < 0 || b >= T(8 * sizeof(T)) ? T(0) : T(u64(a) << b);
}
template <class T>
__device__ inline T shift_right(T a, T b) {
  return T(i64(a) >> (b < 0 || b >= T(8 * sizeof(T)) ? 63 : int(b)));
}
)"},
      {"index_of", R"(
// -1 where an index is out of range.
__device__ inline i64 index_of(i64 index, i64 limit, ricci_fault* fault, unsigned origin) {
  if (u64(index) < u64(limit)) return index;
  report(fault, 1, index, limit, origin);
  return -1;
}
)"},
      {"clamped", R"(
__device__ inline i64 clamped(i64 index, i64 limit) {
  return index < 0 || limit < 1 ? 0 : index < limit ? index : limit - 1;
}
)"},
      {"random_word uniform24 uniform53", R"(
// Word `position` of the stream of Philox4x32-10 that a seed and a key begin.
__device__ inline unsigned random_word(u64 seed, u64 key, u64 position) {
  const u64 s = seed + key * 0x9E3779B97F4A7C15ULL;
  unsigned k0 = unsigned(s), k1 = unsigned(s >> 32);
  const u64 step = position / 4;
  unsigned c0 = unsigned(step), c1 = unsigned(step >> 32), c2 = 0, c3 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = u64(0xD2511F53u) * c0;
    const u64 p1 = u64(0xCD9E8D57u) * c2;
    c0 = unsigned(p1 >> 32) ^ c1 ^ k0;
    c1 = unsigned(p1);
    c2 = unsigned(p0 >> 32) ^ c3 ^ k1;
    c3 = unsigned(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const unsigned which = unsigned(position % 4);
  return which == 0 ? c0 : which == 1 ? c1 : which == 2 ? c2 : c3;
}
// In [0, 1), with 24 bits and with 53.
__device__ inline double uniform24(u64 seed, u64 key, u64 position) {
  return double(random_word(seed, key, position) >> 8) * 0x1p-24;
}
__device__ inline double uniform53(u64 seed, u64 key, u64 position) {
  const u64 high = random_word(seed, key, position);
  return double((high << 32 | random_word(seed, key, position + 1)) >> 11) * 0x1p-53;
}
)"},
      {"random_uniform", R"(
template <bool Wide>
__device__ inline double random_uniform(u64 seed, u64 key, u64 at, double low, double high) {
  const double u = Wide ? uniform53(seed, key, 2 * at) : uniform24(seed, key, at);
  const double drawn = low + u * (high - low);
  return Wide ? drawn : double(float(drawn));
}
)"},
      {"random_normal", R"(
// mean + scale·√(-2 ln u1)·cos(2π u2)
template <bool Wide>
__device__ inline double random_normal(u64 seed, u64 key, u64 at, double mean, double scale) {
  const double least = Wide ? 0x1p-1022 : 0x1p-126;
  double u1 = Wide ? uniform53(seed, key, 4 * at) : uniform24(seed, key, 2 * at);
  const double u2 = Wide ? uniform53(seed, key, 4 * at + 2) : uniform24(seed, key, 2 * at + 1);
  if (u1 < least) u1 = least;
  const double drawn = mean + scale * sqrt(-2 * log(u1)) * cos(6.283185307179586 * u2);
  return Wide ? drawn : double(float(drawn));
}
)"},
  });
  return All;
}

}  // namespace ricci::cuda
