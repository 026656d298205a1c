#include "ricci/array/special.h"

#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include <fmt/format.h>

#include "ricci/array/control.h"
#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"

namespace ricci {

namespace {

// Written out, so that no environment rounds them.
constexpr double HalfRoot = 0.7071067811865476;       // √½
constexpr double LogOfPi = 1.1447298858494002;        // log π
constexpr double HalfLogOfTurn = 0.9189385332046727;  // ½·log 2π

// f of x in f64, as what x is.
template <class F>
Array in_f64(const Array& x, std::string_view what, Here where, F&& f) {
  detail::require_valid(x, what, where);
  const Array strong = detail::strengthened(x, where);
  if (!is_float(strong.dtype())) {
    detail::refuse(ErrorCode::DType, "float",
                   fmt::format("'{}' of {}", what, strong.type().to_string()),
                   "cast it: cast(x, DType::F32)", where);
  }
  return cast(f(cast(strong, DType::F64, where)), strong.dtype(), where);
}

Array wide(double value, Here where) { return full({}, value, {.dtype = DType::F64}, where); }

// c[0]·w^(n-1) + … + c[n-1]
template <std::size_t N>
Array polynomial(const std::array<double, N>& c, const Array& w, Here where) {
  Array p = mul(w, c[0], where) + c[1];
  for (std::size_t i = 2; i < N; ++i) p = mul(p, w, where) + c[i];
  return p;
}

// The y ≥ 0 of which erfc(y) = c and erf(y) = a, 0 < c = 1 - a ≤ 1: an approximation (Giles, 2010),
// and steps of Halley's method by the smaller of the two, which says more. Steps lead the
// derivative to where the value is.
Array erf_inverse(const Array& a, const Array& c, Here where) {
  constexpr std::array<double, 9> Center = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                            -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                            -0.00417768164,  0.246640727,    1.50140941};
  constexpr std::array<double, 9> Tail = {-0.000200214257, 0.000100950558, 0.00134934322,
                                          -0.00367342844,  0.00573950773,  -0.0076224613,
                                          0.00943887047,   1.00167406,     2.83297682};
  const Array w = neg(log(c * (2.0 - c), where), where);
  const Array center = polynomial(Center, w - 2.5, where);
  const Array tail = polynomial(Tail, sqrt(max(w, 5.0, where), where) - 3.0, where);
  // Far out the approximation is none; there the leading term of the asymptotic series is near.
  Array y = ricci::where(w < 5.0, center, tail, where) * a;
  y = ricci::where(w > 16.0, sqrt(max(w - 0.5 * log(max(w, 1.0, where), where), 1.0, where), where),
                   y, where);
  for (int i = 0; i < 4; ++i) {
    const Array slope = exp(neg(square(y, where), where), where) * (2 * std::numbers::inv_sqrtpi);
    const Array off = ricci::where(a < 0.5, erf(y, where) - a, c - erfc(y, where), where) / slope;
    y = y - off / (1.0 + y * off);
  }
  return y;
}

// π·x less whole turns.
Array sine_of_pi(const Array& x, Here where) {
  const Array turn = x - 2.0 * stop_gradient(round(0.5 * x, where), where);
  return sin(turn * std::numbers::pi, where);
}

// log Γ(z), z ≥ 1/2 (Lanczos, 1964).
Array lanczos(const Array& z, Here where) {
  constexpr std::array<double, 8> C = {
      676.5203681218851,  -1259.1392167224028,  771.32342877765313,    -176.61502916214059,
      12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  Array total = full({}, 0.99999999999980993, {.dtype = DType::F64}, where);
  for (std::size_t i = 0; i < C.size(); ++i) total = total + C[i] / (z + static_cast<double>(i));
  const Array t = z + 6.5;
  return HalfLogOfTurn + (z - 0.5) * log(t, where) - t + log(total, where);
}

}  // namespace

Array erfinv(const Array& x, Here where) {
  return in_f64(x, "erfinv", where, [&](const Array& v) {
    const Array a = ricci::where(v < 0.0, neg(v, where), v, where);
    const Array inside = a < 1.0;
    const Array known = ricci::where(inside, a, 0.5, where);
    const Array y = erf_inverse(known, 1.0 - known, where);
    const Array size =
        ricci::where(inside, y, ricci::where(a == 1.0, wide(INFINITY, where), NAN, where), where);
    return ricci::where(v < 0.0, neg(size, where), size, where);
  });
}

Array lgamma(const Array& x, Here where) {
  return in_f64(x, "lgamma", where, [&](const Array& v) {
    const Array low = v < 0.5;
    const Array z = ricci::where(low, 1.0 - v, v, where);
    const Array finite = ricci::where(isinf(z, where), 1.0, z, where);
    const Array upper = ricci::where(isinf(z, where), INFINITY, lanczos(finite, where), where);
    const Array s = abs(sine_of_pi(ricci::where(low, v, 0.25, where), where), where);
    const Array mirrored = LogOfPi - log(s, where) - upper;
    return ricci::where(v == -INFINITY, INFINITY, ricci::where(low, mirrored, upper, where), where);
  });
}
Array gammaln(const Array& x, Here where) { return lgamma(x, where); }

Array digamma(const Array& x, Here where) {
  return in_f64(x, "digamma", where, [&](const Array& v) {
    const Array low = v < 0.5;
    Array z = ricci::where(low, 1.0 - v, v, where);
    Array shift = zeros_like(z, where);
    for (int i = 0; i < 8; ++i) {
      shift = shift + 1.0 / z;
      z = z + 1.0;
    }
    // Σ B₂ₖ / (2k·z²ᵏ)
    constexpr std::array<double, 6> Series = {-691.0 / 32760, 1.0 / 132,  -1.0 / 240,
                                              1.0 / 252,      -1.0 / 120, 1.0 / 12};
    const Array r = 1.0 / square(z, where);
    const Array upper = log(z, where) - 0.5 / z - r * polynomial(Series, r, where) - shift;
    const Array turn = v - stop_gradient(round(v, where), where);
    const Array safe = ricci::where(low, turn, 0.25, where);
    const Array mirrored = upper - std::numbers::pi / tan(safe * std::numbers::pi, where);
    return ricci::where(low, ricci::where(turn == 0.0, NAN, mirrored, where), upper, where);
  });
}

Array betaln(const Array& a, const Array& b, Here where) {
  return sub(add(lgamma(a, where), lgamma(b, where), where), lgamma(add(a, b, where), where),
             where);
}

Array ndtr(const Array& x, Here where) {
  return in_f64(x, "ndtr", where, [&](const Array& v) { return 0.5 * erfc(v * -HalfRoot, where); });
}

Array ndtri(const Array& p, Here where) {
  return in_f64(p, "ndtri", where, [&](const Array& v) {
    const Array inside = logical_and(v > 0.0, v < 1.0, where);
    const Array q = ricci::where(inside, v, 0.5, where);
    const Array low = q < 0.5;
    const Array c = 2.0 * ricci::where(low, q, 1.0 - q, where);
    const Array y = erf_inverse(1.0 - c, c, where) * std::numbers::sqrt2;
    const Array outside = ricci::where(
        v == 0.0, -INFINITY, ricci::where(v == 1.0, wide(INFINITY, where), NAN, where), where);
    return ricci::where(inside, ricci::where(low, neg(y, where), y, where), outside, where);
  });
}

Array normal_logpdf(const Array& x, const Array& mean, const Array& scale, Here where) {
  Array at = x;
  Array center = mean;
  Array width = scale;
  detail::unify("normal_logpdf", at, center, where);
  detail::unify("normal_logpdf", at, width, where);
  const Array z = div(sub(at, center, where), width, where);
  return sub(mul(square(z, where), -0.5, where), add(log(width, where), HalfLogOfTurn, where),
             where);
}

Array entr(const Array& x, Here where) {
  const Array inside = x > 0;
  const Array safe = ricci::where(inside, x, 1.0, where);
  const Array value = neg(mul(safe, log(safe, where), where), where);
  return ricci::where(inside, value, ricci::where(x < 0, -INFINITY, mul(x, 1.0, where), where),
                      where);
}
Array xlog1py(const Array& x, const Array& y, Here where) {
  const Array nothing = eq(x, 0, where);
  const Array product = mul(x, log1p(ricci::where(nothing, 0.0, y, where), where), where);
  return ricci::where(is_nan(y, where), y, product, where);
}

Array cumlogsumexp(const Array& x, std::int64_t axis, Here where) {
  const auto both = [&](const Array& a, const Array& b) { return logaddexp(a, b, where); };
  return moveaxis(associative_scan(both, moveaxis(x, axis, 0, where), where), 0, axis, where);
}

}  // namespace ricci
