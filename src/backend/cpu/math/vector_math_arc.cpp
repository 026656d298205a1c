// Inverse trigonometric functions.
#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

constexpr double QuarterPiHi = 0x1.921fb54442d18p-1;
constexpr double QuarterPiLo = 0x1.1a62633145c07p-55;

/// num/den to twice the precision.
Pair quotient(Pair num, Pair den) {
  const Real q = num.hi / den.hi;
  if (q.c->single) return {q, q.c->real(0)};
  const Pair back = two_product(q, den.hi);
  const Real rest = ((num.hi - back.hi) - back.lo) + (num.lo - q * den.lo);
  return {q, rest / den.hi};
}

/// The angle of the point (b, a), 0 ≤ a ≤ b, b > 0: turns·π/4 + sense·angle, put together once.
Real angle(Real a, Real b, Real turns, Real sense) {
  const Lanes& c = *a.c;
  // Past π/8, the angle from the diagonal is the smaller one.
  const Mask steep = a > b * 0.4142135623730950488;
  const Pair difference = two_sum(a, -b);
  const Pair sum = two_sum(b, a);
  const Pair num{select(steep, difference.hi, a), select(steep, difference.lo, 0.0)};
  const Pair den{select(steep, sum.hi, b), select(steep, sum.lo, 0.0)};
  const Pair t = quotient(num, den);
  const Real z = t.hi * t.hi;
  const Real tail = fma(t.hi * z, evaluate(polynomial::Atan, z), t.lo);
  const Real base = turns + select(steep, sense, 0.0);
  if (c.single) return fma(base, QuarterPiHi, sense * (t.hi + tail));
  const Pair whole = two_product(base, c.real(QuarterPiHi));
  const Pair upper = two_sum(whole.hi, sense * t.hi);
  return upper.hi + (upper.lo + (fma(base, QuarterPiLo, whole.lo) + sense * tail));
}

/// √z·(1 + …) of asin near 1: hi + lo = √z to twice the precision.
Pair root(Real z) {
  const Real s = sqrt(z);
  if (z.c->single) return {s, z.c->real(0)};
  const Pair back = two_product(s, s);
  const Real rest = ((z - back.hi) - back.lo) / (s * 2.0);
  return {s, select(z > 0.0, rest, 0.0)};
}

/// What asin and acos share: asin(t)/t − 1 at t = |x|, or at t = √((1 − |x|)/2) where |x| > ½.
struct ArcSine {
  Real a;      ///< |x|
  Mask outer;  ///< |x| > ½
  Pair t;
  Real tail;  ///< asin(t) − t
};
ArcSine arc_sine(Real x) {
  const Real a = abs(x);
  const Mask outer = a > 0.5;
  const Real z = select(outer, (1.0 - a) * 0.5, a * a);
  const Pair s = root(z);
  const Pair t{select(outer, s.hi, a), select(outer, s.lo, 0.0)};
  return {a, outer, t, t.hi * z * evaluate(polynomial::Asin, z)};
}

}  // namespace

Real atan(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return atan(w); });
  const Lanes& c = *x.c;
  const Real size = at_most(abs(x), 0x1p200);  // beyond, the quotient's parts would overflow
  const Mask beyond = size > 1.0;
  const Real a = select(beyond, 1.0, size);
  const Real b = select(beyond, size, 1.0);
  const Real y = angle(a, b, select(beyond, 2.0, c.real(0)), select(beyond, -1.0, c.real(1)));
  return copysign(y, x);
}

Real atan2(Real y, Real x) {
  if (x.c->is_f32()) {
    return in_double(y, x, [](Real v, Real w) { return atan2(v, w); });
  }
  const Lanes& c = *x.c;
  // Infinite operands count as ±1, and what is beside one as 0.
  const auto is_infinite = [](Real v) { return abs(v) == Infinity; };
  const Mask infinite = is_infinite(x) | is_infinite(y);
  const auto bounded = [&](Real v) {
    const Real unit = select(is_infinite(v), 1.0, select(v.is_nan(), v, 0.0));
    return select(infinite, unit, abs(v));
  };
  Real ax = bounded(x);
  Real ay = bounded(y);
  const Mask above = ay > ax;
  Real a = select(above, ax, ay);
  Real b = select(above, ay, ax);
  if (!c.single) {
    // The larger to [1, 2), so that sums and products of the two neither overflow nor vanish.
    const Bits down = c.bits(1023) - ((b.as_bits() >> 52) & 0x7ffU);
    a = scale(a, down);
    b = scale(b, down);
  }
  b = select(b == 0.0, 1.0, b);  // both zero: the angle is that of the axis
  const Mask left = (x.as_bits() >> 63) != c.bits(0);
  // First octants up: 0 + a, π/2 − a, π/2 + a, π − a.
  const Real turns = select(above, 2.0, select(left, 4.0, c.real(0)));
  const Real one = c.real(1);
  const Real sense = select(above ^ left, -one, one);
  const Real r = copysign(angle(a, b, turns, sense), y);
  return select(x.is_nan() | y.is_nan(), NotANumber, r);
}

Real asin(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return asin(w); });
  const ArcSine s = arc_sine(x);
  const Real inner = s.t.hi + s.tail;
  const Pair upper = quick_two_sum(x.c->real(2 * QuarterPiHi), s.t.hi * -2.0);
  const Real outer = upper.hi + (upper.lo + (2 * QuarterPiLo - (s.tail + s.t.lo) * 2.0));
  const Real y = select(s.outer, outer, inner);
  return select(s.a <= 1.0, copysign(y, x), NotANumber);
}

Real acos(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return acos(w); });
  const Lanes& c = *x.c;
  const ArcSine s = arc_sine(x);
  const Mask negative = x < 0.0;
  // π/2 − asin x inside; 2·asin √… to the right; π less that to the left.
  const Real t = select(s.outer, s.t.hi * 2.0, s.t.hi);
  const Real rest = select(s.outer, (s.tail + s.t.lo) * 2.0, s.tail);
  const Real quarters = select(s.outer, select(negative, 4.0, c.real(0)), 2.0);
  const Mask minus = (negative & s.outer) | !(negative | s.outer);
  const Real one = c.real(1);
  const Real sense = select(minus, -one, one);
  const Pair sum = two_sum(quarters * QuarterPiHi, sense * t);
  const Real y = sum.hi + (sum.lo + fma(quarters, QuarterPiLo, sense * rest));
  return select(s.a <= 1.0, y, NotANumber);
}

}  // namespace ricci::cpu::vm
