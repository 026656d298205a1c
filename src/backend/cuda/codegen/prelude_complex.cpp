// Complex numbers in CUDA C++. Products, quotients and functions are worked out in double;
// branches, special values and the signs of zeros on branch cuts are those of C's Annex G.
#include <array>

#include "backend/cuda/codegen/prelude.h"

namespace ricci::cuda {

std::span<const Snippet> complex_snippets() {
  static constexpr auto All = std::to_array<Snippet>({
      {"c64 c128 Complex", R"(
template <class T>
struct __align__(2 * sizeof(T)) Complex {
  T re;
  T im;
};
typedef Complex<float> c64;
typedef Complex<double> c128;
template <class T>
__device__ inline Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
__device__ inline Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
__device__ inline Complex<T> operator-(Complex<T> a) { return {-a.re, -a.im}; }
template <class T>
__device__ inline bool operator==(Complex<T> a, Complex<T> b) {
  return a.re == b.re && a.im == b.im;
}
template <class T>
__device__ inline bool operator!=(Complex<T> a, Complex<T> b) { return !(a == b); }
template <class T>
__device__ inline bool is_nonzero(Complex<T> a) { return a.re != T(0) || a.im != T(0); }
template <class T>
__device__ inline Complex<T> conjugate(Complex<T> a) { return {a.re, -a.im}; }
__device__ inline c64 to_c64(c128 z) { return {float(z.re), float(z.im)}; }
__device__ inline c128 to_c128(c64 z) { return {z.re, z.im}; }
__device__ inline bool is_endless(double x) {
  return fabs(x) == __longlong_as_double(0x7ff0000000000000LL);
}
__device__ inline bool is_number(double x) {
  return fabs(x) < __longlong_as_double(0x7ff0000000000000LL);
}
// 1 or 0, with the sign of x.
__device__ inline double boxed(double x) { return copysign(is_endless(x) ? 1.0 : 0.0, x); }
__device__ inline double zero_for_nan(double x) { return x != x ? copysign(0.0, x) : x; }
// Infinities that came out as NaN in both parts are found again.
__device__ inline c128 operator*(c128 a, c128 b) {
  const c128 p = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  if (p.re == p.re || p.im == p.im) return p;
  const bool a_endless = is_endless(a.re) || is_endless(a.im);
  const bool b_endless = is_endless(b.re) || is_endless(b.im);
  if (!a_endless && !b_endless && !is_endless(a.re * b.re) && !is_endless(a.im * b.im) &&
      !is_endless(a.re * b.im) && !is_endless(a.im * b.re)) {
    return p;
  }
  if (a_endless) a = {boxed(a.re), boxed(a.im)};
  if (b_endless) b = {boxed(b.re), boxed(b.im)};
  a = {zero_for_nan(a.re), zero_for_nan(a.im)};
  b = {zero_for_nan(b.re), zero_for_nan(b.im)};
  const double infinity = __longlong_as_double(0x7ff0000000000000LL);
  return {infinity * (a.re * b.re - a.im * b.im), infinity * (a.re * b.im + a.im * b.re)};
}
__device__ inline c64 operator*(c64 a, c64 b) { return to_c64(to_c128(a) * to_c128(b)); }
)"},
      {"complex_is_nan complex_is_finite complex_abs", R"(
template <class T>
__device__ inline bool complex_is_nan(Complex<T> z) { return z.re != z.re || z.im != z.im; }
template <class T>
__device__ inline bool complex_is_finite(Complex<T> z) {
  return is_number(z.re) && is_number(z.im);
}
__device__ inline double complex_abs(c128 z) { return hypot(z.re, z.im); }
__device__ inline float complex_abs(c64 z) { return float(hypot(double(z.re), double(z.im))); }
)"},
      {"complex_square", R"(
template <class T>
__device__ inline Complex<T> complex_square(Complex<T> z) { return z * z; }
)"},
      {"complex_quotient complex_rsqrt complex_reciprocal complex_sigmoid", R"(
// Smith's way: both parts over the larger one of the divisor's. Powers of two bring the parts into
// the middle of the range first.
__device__ inline c128 complex_quotient(c128 n, c128 d) {
  if (is_number(n.re) && is_number(n.im) && is_number(d.re) && is_number(d.im) &&
      is_nonzero(d)) {
    const int down = ilogb(fmax(fabs(d.re), fabs(d.im)));
    const double top = fmax(fabs(n.re), fabs(n.im));
    const int up = top == 0.0 ? 0 : ilogb(top);
    const c128 a = {scalbn(n.re, -up), scalbn(n.im, -up)};
    const c128 b = {scalbn(d.re, -down), scalbn(d.im, -down)};
    const double size = fma(b.re, b.re, b.im * b.im);
    const double rest = fma(b.im, b.im, -(b.im * b.im));
    const double first = a.im * b.im;
    const double second = a.re * b.im;
    const double re = fma(a.re, b.re, first) + fma(a.im, b.im, -first);
    const double im = fma(a.im, b.re, -second) - fma(a.re, b.im, -second);
    return {scalbn(re / (size + rest), up - down), scalbn(im / (size + rest), up - down)};
  }
  const double infinity = __longlong_as_double(0x7ff0000000000000LL);
  if (!is_nonzero(d) && (n.re == n.re || n.im == n.im)) {
    return {copysign(infinity, d.re) * n.re, copysign(infinity, d.re) * n.im};
  }
  if ((is_endless(n.re) || is_endless(n.im)) && is_number(d.re) && is_number(d.im)) {
    const c128 a = {boxed(n.re), boxed(n.im)};
    return {infinity * (a.re * d.re + a.im * d.im), infinity * (a.im * d.re - a.re * d.im)};
  }
  if ((is_endless(d.re) || is_endless(d.im)) && is_number(n.re) && is_number(n.im)) {
    const c128 b = {boxed(d.re), boxed(d.im)};
    return {0.0 * (n.re * b.re + n.im * b.im), 0.0 * (n.im * b.re - n.re * b.im)};
  }
  const double size = d.re * d.re + d.im * d.im;
  return {(n.re * d.re + n.im * d.im) / size, (n.im * d.re - n.re * d.im) / size};
}
__device__ inline c64 complex_quotient(c64 n, c64 d) {
  return to_c64(complex_quotient(to_c128(n), to_c128(d)));
}
)"},
      {"complex_exp complex_power complex_sigmoid", R"(
// e^a·(cos b + i sin b); half the exponent at a time where all of it would overflow.
__device__ inline c128 complex_exp(c128 z) {
  const double infinity = __longlong_as_double(0x7ff0000000000000LL);
  const bool large = z.re > 700.0;
  const double e = exp(large ? z.re * 0.5 : z.re);
  const double again = large ? e : 1.0;
  if (z.im == 0.0) return {e * again, z.im};
  if (!is_number(z.im)) {
    if (z.re == -infinity) return {0.0, copysign(0.0, z.im)};
    if (z.re == infinity) return {infinity, z.im - z.im};
  }
  return {cos(z.im) * e * again, sin(z.im) * e * again};
}
)"},
      {"complex_log complex_log2 complex_log1p complex_power", R"(
// ln |z| + i·arg z. Near |z| = 1 by what |z|² is more than 1.
__device__ inline c128 complex_log(c128 z) {
  const double a = fabs(z.re), b = fabs(z.im);
  const double large = a < b ? b : a, small = a < b ? a : b;
  const double angle = atan2(z.im, z.re);
  if (large > 0.5 && large < 2.0) {
    return {0.5 * log1p(fma(large - 1.0, large + 1.0, small * small)), angle};
  }
  // At the ends of the range the length would be beyond it, or lose digits.
  const double by = large > 0x1p1000 ? 0x1p-100 : large < 0x1p-900 ? 0x1p200 : 1.0;
  const double back = large > 0x1p1000 ? 69.314718055994531 : large < 0x1p-900 ? -138.62943611198906 : 0.0;
  return {log(hypot(z.re * by, z.im * by)) + back, angle};
}
)"},
      {"complex_sqrt complex_rsqrt complex_acos complex_asin complex_asinh complex_acosh", R"(
// t = √((|a| + |z|)/2); √z is t + ib/2t to the right of the axis and |b|/2t ± it to its left.
__device__ inline c128 complex_sqrt(c128 z) {
  if (is_endless(z.im)) return {fabs(z.im), z.im};
  const double large = fmax(fabs(z.re), fabs(z.im));
  const double by = large > 0x1p1000 ? 0x1p-200 : large < 0x1p-900 ? 0x1p200 : 1.0;
  const double back = large > 0x1p1000 ? 0x1p100 : large < 0x1p-900 ? 0x1p-100 : 1.0;
  const double a = fabs(z.re) * by, b = fabs(z.im) * by;
  const double half = (a + hypot(a, b)) * 0.5;
  const double t = sqrt(half);
  const double other = half == 0.0 ? 0.0 : b / (t * 2.0) * back;
  return z.re < 0.0 ? c128{other, copysign(t * back, z.im)} : c128{t * back, copysign(other, z.im)};
}
)"},
      {"complex_rsqrt complex_reciprocal", R"(
__device__ inline c128 complex_rsqrt(c128 z) { return complex_quotient(c128{1, 0}, complex_sqrt(z)); }
__device__ inline c128 complex_reciprocal(c128 z) { return complex_quotient(c128{1, 0}, z); }
)"},
      {"complex_sinh complex_sin", R"(
// Far from zero e^|x|/2 would overflow where its product with a sine or cosine does not. `side`: the
// sign an infinity has that may have either.
__device__ inline c128 complex_sinh(c128 z, double side = 1.0) {
  const bool far = fabs(z.re) > 700.0;
  const double half = far ? exp(fabs(z.re) * 0.5) : 1.0;
  const double c = far ? half * 0.5 : cosh(z.re), s = far ? copysign(half * 0.5, z.re) : sinh(z.re);
  // Where there is no angle, zero and infinity are what they are in every direction.
  const bool any_angle = !is_number(z.im) && (z.re == 0.0 || is_endless(z.re));
  const double there = z.re == 0.0 ? z.re : fabs(z.re) * side;
  return {any_angle ? there : s * cos(z.im) * half, z.im == 0.0 ? z.im : c * sin(z.im) * half};
}
)"},
      {"complex_cosh complex_cos", R"(
__device__ inline c128 complex_cosh(c128 z) {
  const bool far = fabs(z.re) > 700.0;
  const double half = far ? exp(fabs(z.re) * 0.5) : 1.0;
  const double c = far ? half * 0.5 : cosh(z.re), s = far ? copysign(half * 0.5, z.re) : sinh(z.re);
  if (!is_number(z.im) && is_endless(z.re)) return {fabs(z.re), z.im - z.im};
  if (!is_number(z.im) && z.re == 0.0) return {z.im - z.im, z.re};
  const double im = z.im == 0.0 ? copysign(1.0, z.re) * z.im : s * sin(z.im) * half;
  return {c * cos(z.im) * half, im};
}
)"},
      {"complex_tanh complex_tan", R"(
// (sinh x cosh x + i sin y cos y)/(sinh² x + cos² y); beyond 20 the real part is ±1, and the other
// 4 sin y cos y e^-2|x|.
__device__ inline c128 complex_tanh(c128 z) {
  if (is_endless(z.re) && !is_number(z.im)) return {copysign(1.0, z.re), copysign(0.0, z.im)};
  const double turn = sin(z.im) * cos(z.im);
  if (fabs(z.re) > 20.0) {
    const double tail = 4.0 * turn * exp(fabs(z.re) * -2.0);
    return {copysign(1.0, z.re) + (z.im - z.im), z.im == 0.0 ? z.im : tail};
  }
  const double s = sinh(z.re), c = cos(z.im);
  const double size = s * s + c * c;
  return {z.re == 0.0 ? z.re : s * cosh(z.re) / size, z.im == 0.0 ? z.im : turn / size};
}
)"},
      {"complex_sin complex_cos complex_tan complex_atan", R"(
__device__ inline c128 times_i(c128 z) { return {-z.im, z.re}; }
__device__ inline c128 over_i(c128 z) { return {z.im, -z.re}; }
)"},
      {"complex_sin", R"(
__device__ inline c128 complex_sin(c128 z) { return over_i(complex_sinh(times_i(z), -1.0)); }
)"},
      {"complex_cos", R"(
__device__ inline c128 complex_cos(c128 z) { return complex_cosh(times_i(z)); }
)"},
      {"complex_tan", R"(
__device__ inline c128 complex_tan(c128 z) { return over_i(complex_tanh(times_i(z))); }
)"},
      {"complex_atanh complex_atan", R"(
// re: ln(1 + 4|x|/((1 - |x|)² + y²))/4, with the sign of x; (ln 2 - ln |y|)/2 above and below 1, where
// y² may be too small for a number.
__device__ inline c128 complex_atanh(c128 z) {
  if (is_endless(z.re) || is_endless(z.im)) {
    return {copysign(0.0, z.re), z.im != z.im ? z.im : copysign(1.5707963267948966, z.im)};
  }
  const double x = fabs(z.re), left = 1.0 - x;
  const double usual = x == 0.0 ? 0.0 : log1p(4.0 * x / (left * left + z.im * z.im)) * 0.25;
  const bool beside_one = left == 0.0 && fabs(z.im) < 1e-9;
  const double re = beside_one ? (0.69314718055994531 - log(fabs(z.im))) * 0.5 : usual;
  const double im = atan2(2.0 * z.im, left * (1.0 + x) - z.im * z.im) * 0.5;
  return {copysign(re, z.re), im};
}
)"},
      {"complex_atan", R"(
__device__ inline c128 complex_atan(c128 z) { return over_i(complex_atanh(times_i(z))); }
)"},
      {"complex_acos complex_asin complex_asinh complex_acosh", R"(
// Infinitely far away the formulas below would subtract infinities. The angle there is that of the
// parts that are infinite, taken as 1, over those that are not, taken as 0.
__device__ inline double far_side(double x) {
  return x != x ? x : copysign(is_endless(x) ? 1.0 : 0.0, x);
}
__device__ inline bool is_far(c128 z) { return is_endless(z.re) || is_endless(z.im); }
)"},
      {"complex_acos", R"(
// Arc functions by the square roots Kahan writes them with: no part cancels.
__device__ inline c128 complex_acos(c128 z) {
  const double infinity = __longlong_as_double(0x7ff0000000000000LL);
  if (is_far(z)) return {atan2(fabs(far_side(z.im)), far_side(z.re)), -copysign(infinity, z.im)};
  const c128 a = complex_sqrt(c128{1.0 - z.re, -z.im}), b = complex_sqrt(c128{1.0 + z.re, z.im});
  return {z.re == 0.0 ? 1.5707963267948966 : 2.0 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
}
)"},
      {"complex_asin complex_asinh", R"(
__device__ inline c128 complex_asin(c128 z) {
  const double infinity = __longlong_as_double(0x7ff0000000000000LL);
  if (is_far(z)) return {atan2(far_side(z.re), fabs(far_side(z.im))), copysign(infinity, z.im)};
  const c128 a = complex_sqrt(c128{1.0 - z.re, -z.im}), b = complex_sqrt(c128{1.0 + z.re, z.im});
  const double re = z.re == 0.0 ? z.re : atan2(z.re, a.re * b.re - a.im * b.im);
  return {re, asinh(a.re * b.im - a.im * b.re)};
}
)"},
      {"complex_asinh", R"(
__device__ inline c128 complex_asinh(c128 z) {
  const c128 turned = complex_asin(c128{z.im, -z.re});
  return {-turned.im, turned.re};
}
)"},
      {"complex_acosh", R"(
__device__ inline c128 complex_acosh(c128 z) {
  const double infinity = __longlong_as_double(0x7ff0000000000000LL);
  if (is_far(z)) {
    return {infinity, copysign(atan2(fabs(far_side(z.im)), far_side(z.re)), z.im)};
  }
  const c128 a = complex_sqrt(c128{z.re - 1.0, z.im}), b = complex_sqrt(c128{z.re + 1.0, z.im});
  const double side = z.im != z.im ? 1.0 : z.im;
  const double im = z.re == 0.0 ? copysign(1.5707963267948966, side) : 2.0 * atan2(a.im, b.re);
  return {asinh(a.re * b.re + a.im * b.im), im};
}
)"},
      {"complex_exp2", R"(
__device__ inline c128 complex_exp2(c128 z) {
  const double size = exp2(z.re), angle = z.im * 0.69314718055994531;
  return {size * cos(angle), z.im == 0.0 ? z.im : size * sin(angle)};
}
)"},
      {"complex_expm1", R"(
// (e^x - 1)·cos y - 2 sin²(y/2) + i·e^x·sin y
__device__ inline c128 complex_expm1(c128 z) {
  if (z.im == 0.0) return {expm1(z.re), z.im};
  const double half = sin(z.im * 0.5);
  return {expm1(z.re) * cos(z.im) - 2.0 * (half * half), exp(z.re) * sin(z.im)};
}
)"},
      {"complex_log2", R"(
__device__ inline c128 complex_log2(c128 z) {
  const c128 l = complex_log(z);
  return {l.re / 0.69314718055994531, l.im / 0.69314718055994531};
}
)"},
      {"complex_log1p", R"(
__device__ inline c128 complex_log1p(c128 z) {
  if (fabs(z.re) < 0.5 && fabs(z.im) < 0.5) {
    return {0.5 * log1p(z.re * (2.0 + z.re) + z.im * z.im), atan2(z.im, 1.0 + z.re)};
  }
  return complex_log(c128{1.0 + z.re, z.im});
}
)"},
      {"complex_sigmoid", R"(
// Of e^z and e^-z the one that does not overflow.
__device__ inline c128 complex_sigmoid(c128 z) {
  const bool right = z.re >= 0.0;
  const c128 e = complex_exp(right ? -z : z);
  const c128 d = complex_quotient(c128{1, 0}, c128{1.0 + e.re, e.im});
  return right ? d : e * d;
}
)"},
      {"complex_power", R"(
// e^(b·ln a); anything to the power 0 is 1, and 0 to a power with a positive real part is 0.
__device__ inline c128 complex_power(c128 a, c128 b) {
  if (!is_nonzero(b)) return {1, 0};
  if (!is_nonzero(a)) {
    return {b.re > 0.0 ? 0.0 : __longlong_as_double(0x7ff8000000000000LL), 0};
  }
  return complex_exp(b * complex_log(a));
}
__device__ inline c64 complex_power(c64 a, c64 b) {
  return to_c64(complex_power(to_c128(a), to_c128(b)));
}
)"},
  });
  return All;
}

}  // namespace ricci::cuda
