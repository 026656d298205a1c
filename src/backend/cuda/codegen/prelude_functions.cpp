// Functions of elements that CUDA does not have itself, and how teams of threads combine numbers.
#include <array>

#include "backend/cuda/codegen/prelude.h"

namespace ricci::cuda {

std::span<const Snippet> function_snippets() {
  static constexpr auto All = std::to_array<Snippet>({
      {"is_finite", R"(
__device__ inline bool is_finite(float x) { return fabsf(x) < __uint_as_float(0x7f800000u); }
__device__ inline bool is_finite(double x) {
  return fabs(x) < __longlong_as_double(0x7ff0000000000000LL);
}
)"},
      {"relu", R"(
// NaN stays NaN.
template <class T>
__device__ inline T relu(T x) { return x != x ? x : x > T(0) ? x : T(0); }
)"},
      {"sign", R"(
template <class T>
__device__ inline T sign(T x) { return x != x ? x : T(int(x > T(0)) - int(x < T(0))); }
)"},
      {"near_reciprocal", R"(
// 1/x, rounded nearly always as it should be, for numbers around 1.
__device__ inline float near_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return fmaf(y, fmaf(-x, y, 1.0f), y);
}
)"},
      {"near_exp2", R"(
// 2^x to two units in the last place, for numbers around 0.
__device__ inline float near_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)"},
      {"near_exp", R"(
// Functions of what is rounded to bf16 or f16 in the end: they err by some 2^-19 of their result, as
// the product in the exponent does, and have no numbers below the smallest normal one.
__device__ inline float near_exp(float x) { return near_exp2(x * 1.4426950408889634f); }
)"},
      {"near_sigmoid near_silu near_gelu_approx", R"(
__device__ inline float near_sigmoid(float x) {
  float y;
  x = 1.0f + near_exp2(x * -1.4426950408889634f);
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
)"},
      {"near_other_sigmoid", R"(
// That of -x, where s is that of x.
__device__ inline float near_other_sigmoid(float x, float s) {
  return s < 0.5f ? 1.0f - s : near_exp2(x * -1.4426950408889634f) * s;
}
)"},
      {"near_silu", R"(
__device__ inline float near_silu(float x) {
  return x == -__uint_as_float(0x7f800000u) ? -0.0f : x * near_sigmoid(x);
}
)"},
      {"near_gelu_approx", R"(
__device__ inline float near_gelu_approx(float x) {
  if (x == -__uint_as_float(0x7f800000u)) return -0.0f;
  return x * near_sigmoid(1.5957691216057308f * fmaf(0.044715f * x, x * x, x));
}
)"},
      {"sigmoid silu gelu_approx", R"(
// Of e^x and e^-x the one that does not overflow.
__device__ inline float sigmoid(float x) {
  const float e = expf(-fabsf(x));
  return (x < 0.0f ? e : 1.0f) * near_reciprocal(1.0f + e);
}
__device__ inline double sigmoid(double x) {
  const double e = exp(-fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}
)"},
      {"silu", R"(
__device__ inline float silu(float x) {
  return x == -__uint_as_float(0x7f800000u) ? -0.0f : x * sigmoid(x);
}
__device__ inline double silu(double x) {
  return x == -__longlong_as_double(0x7ff0000000000000LL) ? -0.0 : x * sigmoid(x);
}
)"},
      {"gelu_approx", R"(
// x/2·(1 + tanh u) = x·sigmoid(2u)
__device__ inline float gelu_approx(float x) {
  if (x == -__uint_as_float(0x7f800000u)) return -0.0f;
  return x * sigmoid(1.5957691216057308f * fmaf(0.044715f * x, x * x, x));
}
__device__ inline double gelu_approx(double x) {
  if (x == -__longlong_as_double(0x7ff0000000000000LL)) return -0.0;
  return x * sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x));
}
)"},
      {"gelu", R"(
// x·Φ(x) = max(x, 0) - |x|·Φ(-|x|). With h = 0.3·|x|, Φ(-|x|)·e^(x²/2) is 1/(1 + h) times a
// polynomial in (h - 1)/(h + 1); x² counts in full, for an error in it is one in the exponent.
__device__ inline float gelu(float x) {
  const float a = fminf(fabsf(x), 14.5f);
  const float square = a * a;
  const float rest = fmaf(a, a, -square);
  // e^(-x²/2) = 2^n·2^f
  const float shifted = fmaf(square, -0.72134751081f, 12582912.0f);
  float f = fmaf(square, -0.72134751081f, 12582912.0f - shifted);
  f = fmaf(square, -9.629815168e-09f, fmaf(rest, -0.72134751081f, f));
  const float t = near_reciprocal(fmaf(a, 0.3f, 1.0f));
  const float y = fmaf(t, -2.0f, 1.0f);
  float q = 4.028024382336611e-05f;
  q = fmaf(q, y, 7.667974366264874e-05f);
  q = fmaf(q, y, -0.00028060650722417263f);
  q = fmaf(q, y, -0.0005696906336352184f);
  q = fmaf(q, y, 0.002423494163810628f);
  q = fmaf(q, y, 0.001816031779313654f);
  q = fmaf(q, y, -0.027760336693389384f);
  q = fmaf(q, y, 0.08654971009040044f);
  q = fmaf(q, y, -0.16457948541839487f);
  q = fmaf(q, y, 0.2219706130788708f);
  // Of 2^n·2^64 the bits; never positive, n leaves it a number.
  const float scale = __uint_as_float((__float_as_uint(shifted) << 23) + (191u << 23));
  const float part = a * t * q * near_exp2(f) * scale;
  return fmaf(part, -0x1p-64f, x < 0.0f ? -0.0f : x);
}
__device__ inline double gelu(double x) {
  if (x == -__longlong_as_double(0x7ff0000000000000LL)) return -0.0;
  return 0.5 * x * erfc(x * -0.70710678118654752);
}
)"},
      {"Divisor divisor_of divided near_divided", R"(
// a/b for many a, without a branch: with 1/b, rounded, the quotient's remainder makes it the rounded
// one. Both are scaled where 1/b would not be a normal number; then nothing is lost but what over-
// or underflows anyway. Quotients that are no numbers, or nearly so, are as they are.
struct Divisor {
  float by, inverse, scale, limit;
};
__device__ inline Divisor divisor_of(float b) {
  const float size = fabsf(b);
  const float scale = size < 0x1p-100f ? 0x1p24f : size > 0x1p100f ? 0x1p-24f : 1.0f;
  const bool is_number = size > 0.0f && size <= 0x1.fffffep127f;
  return {b * scale, 1.0f / (b * scale), scale, is_number ? 0x1p126f : 0.0f};
}
__device__ inline float divided(float a, Divisor d) {
  const float x = a * d.scale;
  const float q = x * d.inverse;
  const float y = fmaf(fmaf(-q, d.by, x), d.inverse, q);
  return fabsf(q) < d.limit ? y : q;
}
)"},
      {"near_divided", R"(
// The same where the last digit does not count.
__device__ inline float near_divided(float a, Divisor d) { return a * d.scale * d.inverse; }
)"},
      {"softplus log_sigmoid", R"(
__device__ inline double softplus(double x) {
  return (x != x ? x : x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}
__device__ inline float softplus(float x) { return float(softplus(double(x))); }
)"},
      {"log_sigmoid", R"(
template <class T>
__device__ inline T log_sigmoid(T x) { return -softplus(-x); }
)"},
      {"elu", R"(
__device__ inline float elu(float x) { return x > 0.0f ? x : expm1f(x); }
__device__ inline double elu(double x) { return x > 0.0 ? x : expm1(x); }
)"},
      {"selu", R"(
__device__ inline double selu(double x) {
  return 1.0507009873554804934 * (x > 0.0 ? x : 1.6732632423543772848 * expm1(x));
}
__device__ inline float selu(float x) { return float(selu(double(x))); }
)"},
      {"hard_sigmoid hard_swish", R"(
template <class T>
__device__ inline T hard_sigmoid(T x) {
  return x <= T(-3) ? T(0) : x >= T(3) ? T(1) : (x + T(3)) / T(6);
}
)"},
      {"hard_swish", R"(
template <class T>
__device__ inline T hard_swish(T x) { return x <= T(-3) ? T(-0.0) : x * hard_sigmoid(x); }
)"},
      {"mish", R"(
// tanh(ln(1 + w)) = n/(n + 2) with n = w·(w + 2): nothing cancels.
__device__ inline double mish(double x) {
  if (x == -__longlong_as_double(0x7ff0000000000000LL)) return -0.0;
  const double w = exp(x < 40.0 ? x : 40.0);
  const double n = w * (w + 2.0);
  return x != x ? x : x * (n / (n + 2.0));
}
__device__ inline float mish(float x) { return float(mish(double(x))); }
)"},
      {"softsign", R"(
__device__ inline float softsign(float x) {
  return is_finite(x) ? x / (1.0f + fabsf(x)) : x != x ? x : copysignf(1.0f, x);
}
__device__ inline double softsign(double x) {
  return is_finite(x) ? x / (1.0 + fabs(x)) : x != x ? x : copysign(1.0, x);
}
)"},
      {"Sum", R"(
template <class T>
__device__ inline T plus(T a, T b) { return a + b; }
__device__ inline int plus(int a, int b) { return int(unsigned(a) + unsigned(b)); }
__device__ inline i64 plus(i64 a, i64 b) { return i64(u64(a) + u64(b)); }
struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const { return plus(a, b); }
};
)"},
      {"Product", R"(
template <class T>
__device__ inline T times(T a, T b) { return a * b; }
__device__ inline int times(int a, int b) { return int(unsigned(a) * unsigned(b)); }
__device__ inline i64 times(i64 a, i64 b) { return i64(u64(a) * u64(b)); }
struct Product {
  template <class T>
  __device__ T operator()(T a, T b) const { return times(a, b); }
};
)"},
      {"Larger", R"(
struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const { return larger(a, b); }
};
)"},
      {"Smaller", R"(
struct Smaller {
  template <class T>
  __device__ T operator()(T a, T b) const { return smaller(a, b); }
};
)"},
      {"Either", R"(
struct Either {
  __device__ bool operator()(bool a, bool b) const { return a || b; }
};
)"},
      {"Both", R"(
struct Both {
  __device__ bool operator()(bool a, bool b) const { return a && b; }
};
)"},
      {"team_total block_total", R"(
template <class T>
__device__ inline T of_lane(unsigned team, T x, int other) {
  return T(__shfl_xor_sync(team, x, other));
}
)"},
      {"c64 c128", R"(
template <class T>
__device__ inline Complex<T> of_lane(unsigned team, Complex<T> x, int other) {
  return {__shfl_xor_sync(team, x.re, other), __shfl_xor_sync(team, x.im, other)};
}
)"},
      {"team_total block_total", R"(
// Combines what neighbouring lanes have; all of them get the result. `team` has their bits.
template <int Lanes, class F, class T>
__device__ inline T team_total(unsigned team, F combine, T x) {
#pragma unroll
  for (int other = Lanes / 2; other > 0; other /= 2) x = combine(x, of_lane(team, x, other));
  return x;
}
)"},
      {"block_total", R"(
// The same for a block: `parts` has room for what each of its warps has.
template <int Warps, class F, class T>
__device__ inline T block_total(T* parts, F combine, T x) {
  x = team_total<32>(0xffffffffu, combine, x);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  return team_total<Warps>(0xffffffffu, combine, parts[threadIdx.x % Warps]);
}
)"},
  });
  return All;
}

}  // namespace ricci::cuda
