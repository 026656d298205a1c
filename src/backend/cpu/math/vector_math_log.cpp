// Logarithms and what is made of them.
#include <numbers>

#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

constexpr double Ln2 = std::numbers::ln2;
// The upper part times an exponent is exact.
constexpr double Ln2Hi = 0x1.62e42fefa38p-1;
constexpr double Ln2Lo = 0x1.ef35793c7673p-45;

/// log(1 + f) = hi + lo, hi + lo not yet rounded; for double precision.
Pair log_of_fraction(Real f) {
  const Real s = f / (f + 2.0);
  const Real z = s * s;
  const Real half_square = f * f * 0.5;
  const Real tail = s * (half_square + z * evaluate(polynomial::LogRatio, z));
  // f − f²/2 + tail, with f − f²/2 to twice the precision.
  const Pair square = two_product(f, f * 0.5);
  const Pair sum = quick_two_sum(f, -square.hi);
  return {sum.hi, (sum.lo - square.lo) + tail};
}

/// log(1 + f) for single precision.
Real short_log_of_fraction(Real f) {
  const auto& table = polynomial::LogDirect;
  const Real q = evaluate(f.c->is_f32() ? table.single : table.full, f);
  return fma(f * f, fma(f, q, -0.5), f);
}

/// log(x.hi + x.lo) + extra·ln 2, to the precision of its distance from 1.
Real log_of_pair(Pair x, Real extra) {
  const LogParts parts = log_parts(x.hi);
  const Real k = parts.k + extra;
  const Real rest = x.lo / x.hi;
  if (x.hi.c->single) return fma(k, Ln2, short_log_of_fraction(parts.f) + rest);
  const Pair fraction = log_of_fraction(parts.f);
  const Pair sum = two_sum(k * Ln2Hi, fraction.hi);
  return sum.hi + (sum.lo + (fraction.lo + fma(k, Ln2Lo, rest)));
}

/// What a logarithm gives outside (0, ∞).
Real outside_domain(Real x, Real y) {
  const Real special = select(x == 0.0, -Infinity, x.c->real(NotANumber));
  return select(x == Infinity, x, select(x > 0.0, y, special));
}

}  // namespace

LogParts log_parts(Real x) {
  const Lanes& c = *x.c;
  const unsigned fraction = c.fraction();
  const auto bias = static_cast<std::uint64_t>(c.bias());
  // A number too small for a leading one is scaled first. Doubles made of floats never are.
  const double step = c.pick(0x1p25, 0x1p54);
  const bool may_be_tiny = c.is_f32() || !c.single;
  const Mask tiny = x < c.pick(0x1p-126, 0x1p-1022);
  const Real normal = may_be_tiny ? select(tiny, x * step, x) : x;
  const std::uint64_t sqrt_half = c.is_f32() ? 0x3f3504f3U : 0x3fe6a09e667f3bcdU;
  const Bits bits = normal.as_bits();
  const Bits shifted = (bits + ((bias << fraction) - sqrt_half)) >> fraction;  // k + bias
  const Real mantissa = (bits - (shifted << fraction) + (bias << fraction)).as_real();
  // To a number by way of 2^23 (2^52): its last digits are the integer.
  const double ground = c.pick(0x1p23, 0x1p52);
  Real k = (shifted | c.real(ground).as_bits()).as_real() - (ground + static_cast<double>(bias));
  if (may_be_tiny) k = select(tiny, k - c.pick(25, 54), k);
  return {k, mantissa - 1.0};
}

Real log(Real x) {
  const LogParts parts = log_parts(x);
  if (x.c->is_f32()) {
    const Real f = parts.f;
    const Real q = evaluate(polynomial::LogDirect.single, f);
    const Real square = f * f;
    Real y = fma(parts.k, 0x1.7f7d1cp-20, square * f * q);
    y = fma(square, -0.5, y) + f;
    return outside_domain(x, fma(parts.k, 0x1.62e4p-1, y));
  }
  if (x.c->single) {
    return outside_domain(x, fma(parts.k, Ln2, short_log_of_fraction(parts.f)));
  }
  const Real f = parts.f;
  const Real s = f / (f + 2.0);
  const Real z = s * s;
  const Real half_square = f * f * 0.5;
  const Real tail = s * (half_square + z * evaluate(polynomial::LogRatio, z));
  const Real y = f - (half_square - fma(parts.k, Ln2Lo, tail));
  return outside_domain(x, fma(parts.k, Ln2Hi, y));
}

Real log2(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return log2(w); });
  const LogParts parts = log_parts(x);
  if (x.c->single) {
    return outside_domain(x, fma(short_log_of_fraction(parts.f), std::numbers::log2e, parts.k));
  }
  const Pair fraction = log_of_fraction(parts.f);
  const Pair product = two_product(fraction.hi, x.c->real(std::numbers::log2e));
  const Pair sum = two_sum(parts.k, product.hi);
  const Real rest =
      fma(fraction.lo, std::numbers::log2e, fma(fraction.hi, 0x1.777d0ffda0d24p-56, product.lo));
  return outside_domain(x, sum.hi + (sum.lo + rest));
}

Real log1p(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return log1p(w); });
  const Lanes& c = *x.c;
  const Real y = log_of_pair(two_sum(c.real(1), x), c.real(0));
  return copysign(outside_domain(x + 1.0, y), x);
}

Real softplus(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return softplus(w); });
  const Lanes& c = *x.c;
  const Real e = exp(-abs(x));
  return log_of_pair(two_sum(c.real(1), e), c.real(0)) + select(x < 0.0, 0.0, x);
}

Real asinh(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return asinh(w); });
  const Lanes& c = *x.c;
  const Real a = abs(x);
  // a + √(a² + 1) = 1 + (a + a²/(1 + √(a² + 1))); 2a where that is the same.
  const Mask large = a > 0x1p28;
  const Real square = a * a;
  const Pair more = two_sum(a, square / (sqrt(square + 1.0) + 1.0));
  const Pair sum = two_sum(c.real(1), more.hi);
  const Pair argument{select(large, a, sum.hi), select(large, 0.0, sum.lo + more.lo)};
  const Real y = log_of_pair(argument, select(large, 1.0, c.real(0)));
  return copysign(select(a < Infinity, y, a), x);
}

Real acosh(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return acosh(w); });
  const Lanes& c = *x.c;
  // x + √(x² − 1) = 1 + (t + √(t(t + 2))), t = x − 1; 2x where that is the same.
  const Mask large = x > 0x1p28;
  const Real t = x - 1.0;
  const Pair under = two_product(t, t + 2.0);
  const Real root = sqrt(under.hi);
  const Pair more = two_sum(root, t);
  const Pair sum = two_sum(c.real(1), more.hi);
  const Pair argument{select(large, x, sum.hi), select(large, 0.0, sum.lo + more.lo)};
  const Real y = log_of_pair(argument, select(large, 1.0, c.real(0)));
  return select(x == Infinity, x, select(x >= 1.0, y, NotANumber));
}

Real atanh(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return atanh(w); });
  const Lanes& c = *x.c;
  // ½·log(1 + 2a/(1 − a)), the quotient to twice the precision.
  const Real a = abs(x);
  const Real twice = a * 2.0;
  const Pair below = quick_two_sum(c.real(1), -a);
  const Real q = twice / below.hi;
  const Pair back = two_product(q, below.hi);
  const Real rest = (((twice - back.hi) - back.lo) - q * below.lo) / below.hi;
  const Pair sum = two_sum(c.real(1), q);
  const Real y = log_of_pair({sum.hi, sum.lo + rest}, c.real(0)) * 0.5;
  const Real edge = select(a == 1.0, Infinity, c.real(NotANumber));
  return copysign(select(a < 1.0, y, edge), x);
}

}  // namespace ricci::cpu::vm
