// Powers and the length of a vector.
#include <numbers>

#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

/// log2 of a positive finite x, good to some 65 digits (40 for single precision).
Pair log2_pair(Real x) {
  const Lanes& c = *x.c;
  const LogParts parts = log_parts(x);
  const Real f = parts.f;
  if (c.single) {
    const Real s = f / (f + 2.0);
    const Real z = s * s;
    const Real log = s * fma(z, evaluate(polynomial::LogRatio, z), 2.0);
    return {fma(log, std::numbers::log2e, parts.k), c.real(0)};
  }
  // s = f/(2 + f), then atanh s = s + s·(s²/3 + s⁴·tail), all but the tail in pairs.
  const Pair den = quick_two_sum(c.real(2), f);
  const Real s = f / den.hi;
  const Pair back = two_product(s, den.hi);
  const Real s_lo = (((f - back.hi) - back.lo) - s * den.lo) / den.hi;
  const Pair square = two_product(s, s);
  const Real square_lo = fma(s * 2.0, s_lo, square.lo);
  const Pair third = two_product(square.hi, c.real(0x1.5555555555555p-2));
  const Real third_lo =
      fma(square_lo, 0x1.5555555555555p-2, fma(square.hi, 0x1.5555555555555p-56, third.lo));
  const Real tail = square.hi * square.hi * evaluate(polynomial::LogTail, square.hi);
  const Pair more = quick_two_sum(third.hi, third_lo + tail);
  const Pair product = two_product(s, more.hi);
  const Pair sum = quick_two_sum(s, product.hi);
  const Real sum_lo = sum.lo + (product.lo + fma(s, more.lo, fma(s_lo, more.hi, s_lo)));
  const Pair scaled = two_product(sum.hi, c.real(0x1.71547652b82fep+1));
  const Real scaled_lo =
      fma(sum.hi, 0x1.777d0ffda0d24p-55, fma(sum_lo, 0x1.71547652b82fep+1, scaled.lo));
  const Pair all = two_sum(parts.k, scaled.hi);
  return quick_two_sum(all.hi, all.lo + scaled_lo);
}

/// 2^(y·log), kept to exponents that decide between 0, a number and infinity.
Real exp2_of_product(Pair log, Real y) {
  const Lanes& c = *y.c;
  // No y beyond 2^66 gives a number with any log but 0.
  const Real bounded = at_least(at_most(y, 0x1p66), -0x1p66);
  Pair product{log.hi * bounded, c.real(0)};
  if (!c.single) {
    product = two_product(log.hi, bounded);
    product.lo = fma(log.lo, bounded, product.lo);
  }
  const Mask inside = abs(product.hi) < 1100.0;
  const Real hi = at_least(at_most(product.hi, 1100), -1100);
  const Whole n = nearest(hi, 1);
  return exp2_of(n, (hi - n.number) + select(inside, product.lo, 0.0));
}

}  // namespace

Real pow(Real x, Real y) {
  if (x.c->is_f32()) {
    return in_double(x, y, [](Real v, Real w) { return pow(v, w); });
  }
  const Lanes& c = *x.c;
  const Real a = abs(x);
  const Mask rising = y > 0.0;
  Real r = exp2_of_product(log2_pair(a), y);
  r = select(a == 0.0, select(rising, 0.0, c.real(Infinity)), r);
  r = select(a == Infinity, select(rising, Infinity, c.real(0)), r);
  const Mask whole = trunc(y) == y;
  const Real half = y * 0.5;
  const Mask odd = whole & !(trunc(half) == half);
  const Mask minus = (x.as_bits() >> 63) != c.bits(0);
  r = select(odd & minus, -r, r);
  r = select((x < 0.0) & (x > -Infinity) & !whole, NotANumber, r);
  r = select(x.is_nan() | y.is_nan(), NotANumber, r);
  return select((y == 0.0) | (x == 1.0), 1.0, r);
}

Real hypot(Real x, Real y) {
  if (x.c->is_f32()) {
    return in_double(x, y, [](Real v, Real w) {
      const Real r = sqrt(fma(v, v, w * w));
      return select((abs(v) == Infinity) | (abs(w) == Infinity), Infinity, r);
    });
  }
  const Lanes& c = *x.c;
  const Real ax = abs(x);
  const Real ay = abs(y);
  const Mask swapped = ay > ax;
  // The larger to [1, 2); then the squares' sum, and its root, in pairs.
  const Real large = select(swapped, ay, ax);
  const Bits down = c.bits(1023) - ((large.as_bits() >> 52) & 0x7ffU);
  const Real a = scale(large, down);
  const Real b = scale(select(swapped, ax, ay), down);
  const Pair aa = two_product(a, a);
  const Pair bb = two_product(b, b);
  const Pair sum = quick_two_sum(aa.hi, bb.hi);
  const Real root = sqrt(sum.hi);
  const Pair back = two_product(root, root);
  const Real rest = ((sum.hi - back.hi) - back.lo) + (sum.lo + (aa.lo + bb.lo));
  const Real r = scale(root + rest / (root * 2.0), c.bits(0) - down);
  const Real zero_or_r = select(large == 0.0, 0.0, r);
  const Real defined = select(x.is_nan() | y.is_nan(), NotANumber, zero_or_r);
  return select((ax == Infinity) | (ay == Infinity), Infinity, defined);
}

}  // namespace ricci::cpu::vm
