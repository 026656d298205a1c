// Sine, cosine, tangent.
#include "backend/cpu/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

/// sin(r.hi + r.lo), but for the sign of a zero.
Real sin_near_zero(const Reduced& r) {
  const Real z = r.hi * r.hi;
  const Real tail = evaluate(polynomial::Sin, z);
  if (r.hi.c->single) return fma(r.hi * z, tail, r.hi);
  return r.hi + fma(r.hi * z, tail, fma(r.lo, z * -0.5, r.lo));
}

/// cos(r.hi + r.lo)
Real cos_near_zero(const Reduced& r) {
  const Real z = r.hi * r.hi;
  const Real tail = evaluate(polynomial::Cos, z);
  const Real half = z * 0.5;
  const Real upper = 1.0 - half;
  const Real lost = (1.0 - upper) - half;
  if (r.hi.c->single) return upper + fma(z * z, tail, lost);
  return upper + (fma(z * z, tail, lost) - r.hi * r.lo);
}

/// sin of the angle n·π/2 + r
Real sin_in_quadrant(const Reduced& r, Bits n) {
  const Lanes& c = *r.hi.c;
  const Mask odd = (n & 1U) != c.bits(0);
  const Real y = select(odd, cos_near_zero(r), sin_near_zero(r));
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
  const Lanes& c = *x.c;
  const Reduced r = reduce_quadrant(x);
  const Real s = sin_near_zero(r);
  const Real k = cos_near_zero(r);
  const Mask odd = (r.n & 1U) != c.bits(0);
  const Real y = select(odd, -k, s) / select(odd, s, k);
  return select(x == 0.0, x, y);
}

}  // namespace ricci::cpu::vm
