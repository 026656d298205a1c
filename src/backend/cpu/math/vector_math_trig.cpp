// Sine, cosine, tangent.
#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

/// sin(r.hi + r.lo) = hi + lo, but for the sign of a zero.
Pair sin_near_zero(const Reduced& r) {
  const Real z = r.hi * r.hi;
  const Real tail = evaluate(polynomial::Sin, z);
  const Real rest = r.hi.c->single ? r.hi.c->real(-0.0) : fma(r.lo, z * -0.5, r.lo);
  return {r.hi, fma(r.hi * z, tail, rest)};
}

/// cos(r.hi + r.lo) = hi + lo
Pair cos_near_zero(const Reduced& r) {
  const Real z = r.hi * r.hi;
  const Real tail = evaluate(polynomial::Cos, z);
  const Real half = z * 0.5;
  const Real upper = 1.0 - half;
  const Real lost = (1.0 - upper) - half;
  if (r.hi.c->single) return {upper, fma(z * z, tail, lost)};
  return {upper, fma(z * z, tail, lost) - r.hi * r.lo};
}

/// sin of the angle n·π/2 + r
Real sin_in_quadrant(const Reduced& r, Bits n) {
  const Lanes& c = *r.hi.c;
  const Mask odd = (n & 1U) != c.bits(0);
  const Pair s = sin_near_zero(r);
  const Pair k = cos_near_zero(r);
  const Real y = select(odd, k.hi + k.lo, s.hi + s.lo);
  const Bits flip = (n & 2U) << (c.width() - 2);
  return (y.as_bits() ^ flip).as_real();
}

}  // namespace

Real sin(Real x) {
  const Reduced r = reduce_quadrant(x);
  return select(x == 0.0, x, sin_in_quadrant(r, r.n));
}

Real cos(Real x) {
  const Reduced r = reduce_quadrant(x);
  return sin_in_quadrant(r, r.n + 1U);
}

Real tan(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return tan(w); });
  const Lanes& c = *x.c;
  const Reduced r = reduce_quadrant(x);
  const Pair s = sin_near_zero(r);
  const Pair k = cos_near_zero(r);
  const Mask odd = (r.n & 1U) != c.bits(0);
  const Pair num = quick_two_sum(select(odd, -k.hi, s.hi), select(odd, -k.lo, s.lo));
  const Pair den = quick_two_sum(select(odd, s.hi, k.hi), select(odd, s.lo, k.lo));
  const Real q = num.hi / den.hi;
  if (c.single) return select(x == 0.0, x, q);
  const Pair back = two_product(q, den.hi);
  const Real rest = ((num.hi - back.hi) - back.lo) + (num.lo - q * den.lo);
  // tan of a tiny angle is that angle: there the product's parts would vanish.
  return select(abs(x) < 0x1p-500, x, q + rest / den.hi);
}

}  // namespace ricci::cpu::vm
