// Exponentials and what is made of them.
#include <numbers>

#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

constexpr double Log2E = std::numbers::log2e;

/// ln 2 in two parts; a product of the upper one with an exponent is exact, fma or not.
struct Ln2 {
  double hi;
  double lo;
};
Ln2 ln2_for(const Lanes& c) {
  return c.is_f32() ? Ln2{0x1.62e4p-1, 0x1.7f7d1cp-20}
                    : Ln2{0x1.62e42fefa38p-1, 0x1.ef35793c7673p-45};
}

/// x − n·ln 2, and its rounding error.
Pair reduce(Real x, Real n) {
  const Ln2 ln2 = ln2_for(*x.c);
  if (x.c->single && !x.c->is_f32()) {
    return {fma(n, -std::numbers::ln2, x), x.c->real(0)};
  }
  const Real upper = fma(n, -ln2.hi, x);
  const Real r = fma(n, -ln2.lo, upper);
  return {r, fma(n, -ln2.lo, upper - r)};
}

/// x·σ(v) with e^(−v) in parts, (1 + p)·2ⁿ. For v < 0 numerator and denominator are worked out
/// times 2^−K, so that e^(−v) does not overflow where the quotient is still a number.
Real logistic_product(Real x, Mask negative, ExpParts e) {
  const Lanes& c = *x.c;
  const int shift = c.is_f32() ? 64 : 512;
  const Real unit = select(negative, std::ldexp(1.0, -shift), c.real(1));
  const Bits lowered = select(negative, c.bits(static_cast<std::uint64_t>(-shift)), c.bits(0));
  const Real power = power_of_two(e.n + lowered);
  const Real denominator = power + fma(e.p, power, unit);
  return (x / denominator) * unit;
}

/// Where −v is kept for logistic_product: beyond, the quotient no longer changes.
Real logistic_exponent(Real minus_v) {
  const Lanes& c = *minus_v.c;
  return at_least(at_most(minus_v, c.pick(130, 800)), c.pick(-80, -700));
}

/// A constant as the sum of two numbers of the type.
struct SplitConstant {
  double hi;
  double lo;
};
SplitConstant split(const Lanes& c, double hi, double lo) {
  if (!c.is_f32()) return {hi, lo};
  const double rounded = static_cast<double>(static_cast<float>(hi));
  return {rounded, hi - rounded};
}

/// 2u = x·(a + b·x²), a = 2·√(2/π), b = 0.044715·a. An error in 2u is one in e^(−2u) however large
/// u is, hence a pair.
Pair gelu_approx_angle(Real x) {
  const Lanes& c = *x.c;
  const SplitConstant a = split(c, 0x1.9884533d43651p+0, -0x1.cbc0d30ebfd15p-54);
  const SplitConstant b = split(c, 0x1.2444f2a4d8b4bp-4, -0x1.3023b0e5fbc6ep-58);
  const Pair square = two_product(x, x);
  const Pair cubic = two_product(square.hi, c.real(b.hi));
  const Real cubic_lo = fma(square.lo, b.hi, fma(square.hi, b.lo, cubic.lo));
  const Pair sum = two_sum(c.real(a.hi), cubic.hi);
  const Real sum_lo = sum.lo + (cubic_lo + a.lo);
  const Pair v = two_product(x, sum.hi);
  return {v.hi, fma(x, sum_lo, v.lo)};
}

/// e^|x|/2 without overflow before the result's own.
Real half_exp_of_magnitude(Real x) {
  const ExpParts e = exp_parts(at_most(abs(x), x.c->pick(90, 711)));
  return scale(e.p, e.n - 1U);
}

}  // namespace

ExpParts exp_less_one(Real x) {
  const Whole n = nearest(x, Log2E);
  const Real r = reduce(x, n.number).hi;
  return {fma(r * r, evaluate(polynomial::Exp, r), r), n.integer};
}

ExpParts exp_less_one_near(Real x, Real correction) {
  const Ln2 ln2 = ln2_for(*x.c);
  const Whole n = nearest(x, Log2E);
  const Real r = fma(n.number, -ln2.hi, x) + fma(n.number, -ln2.lo, correction);
  return {fma(r * r, evaluate(polynomial::Exp, r), r), n.integer};
}

ExpParts exp_less_one(Pair x) {
  const Whole n = nearest(x.hi, Log2E);
  const Pair r = reduce(x.hi, n.number);
  const Real square = r.hi * r.hi;
  const Real q = evaluate(polynomial::Exp, r.hi);
  // e^(r + lo) = eʳ + lo·eʳ
  const Real lo = r.lo + x.lo;
  const Real rest = fma(lo, fma(square, q, r.hi), lo);
  return {r.hi + fma(square, q, rest), n.integer};
}

ExpParts exp_parts(Real x) {
  const ExpParts e = exp_less_one(x);
  return {e.p + 1.0, e.n};
}

ExpParts expm1_parts(Real x) {
  const Whole n = nearest(x, Log2E);
  const Pair r = reduce(x, n.number);
  const Real q = evaluate(polynomial::Expm1, r.hi);
  if (x.c->single) return {fma(r.hi * r.hi, q, r.hi), n.integer};
  return {r.hi + fma(r.hi * r.hi, q, r.lo), n.integer};
}

Real exp(Real x) {
  const Lanes& c = *x.c;
  const Real inside = at_least(at_most(x, c.pick(89, 710)), c.pick(-105, -746));
  const ExpParts e = exp_less_one(inside);
  return scale_one_and(e.p, e.n, inside.as_bits().is_negative());
}

Real exp_not_positive(Real x) {
  const Lanes& c = *x.c;
  const ExpParts e = exp_less_one(at_least(x, c.pick(-105, -746)));
  return scale_one_and(e.p, e.n, c.everywhere());
}

Real exp2_of(Whole n, Real f) {
  const Real x = fma(f, evaluate(polynomial::Exp2, f), 1.0);
  return scale_near_one(x, n.integer, n.integer.is_negative());
}

Real exp2(Real x) {
  const Lanes& c = *x.c;
  const Real inside = at_least(at_most(x, c.pick(129, 1025)), c.pick(-151, -1076));
  const Whole n = nearest(inside, 1);
  return exp2_of(n, inside - n.number);
}

Real expm1(Real x) {
  const Lanes& c = *x.c;
  if (c.is_f32()) return in_double(x, [](Real w) { return expm1(w); });
  const ExpParts e = expm1_parts(at_least(at_most(x, 710), -50));
  // Half of it, for 2^1024 is not a number.
  const Real unit = power_of_two(e.n - 1U);
  return copysign(fma(unit, e.p, unit - 0.5) * 2.0, x);
}

Real sigmoid(Real x) {
  return logistic_product(x.c->real(1), x < 0.0, exp_less_one(logistic_exponent(-x)));
}

Real silu(Real x) {
  const Real bounded = at_least(x, x.c->pick(-130, -800));
  const Real y = logistic_product(bounded, x < 0.0, exp_less_one(logistic_exponent(-x)));
  return select(x == -Infinity, -0.0, y);
}

Real gelu_approx(Real x) {
  // 1 + tanh u = 2σ(2u).
  const double far_enough = x.c->pick(12, 100);
  const Real bounded = at_least(x, -far_enough);
  const Pair v = gelu_approx_angle(at_most(bounded, far_enough));
  const Pair minus_v{logistic_exponent(-v.hi), -v.lo};
  const ExpParts e =
      x.c->is_f32() ? exp_less_one_near(minus_v.hi, minus_v.lo) : exp_less_one(minus_v);
  const Real y = logistic_product(bounded, x < 0.0, e);
  return select(x == -Infinity, -0.0, y);
}

Real tanh(Real x) {
  // ±(e^±2a − 1)/(e^±2a + 1), the numerator without cancellation. The sign is the one with which
  // the denominator lies just below a power of two, where rounding is finer.
  const Lanes& c = *x.c;
  const Real a = at_most(abs(x), c.pick(10, 22));
  const ExpParts e = expm1_parts(a * select(a < c.pick(0.3, 0.17), -2.0, c.real(2)));
  const Real unit = power_of_two(e.n);
  const Real m = fma(unit, e.p, unit - 1.0);
  const Real below = m + 2.0;
  const Real y = m / below;
  if (c.single) return copysign(y, x);
  // The denominator's rounding, undone: 1/(m + 2) = (1 − y)/2.
  const Real lost = (2.0 - below) + m;
  return copysign(y - y * lost * (1.0 - y) * 0.5, x);
}

Real sinh(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return sinh(w); });
  const Real z = x * x;
  const Real near = fma(x * z, evaluate(polynomial::Sinh, z), x);
  const Real h = half_exp_of_magnitude(x);
  // The first form's sum would lose the sign of a zero.
  return select(abs(x) < 1.0, copysign(near, x), copysign(h - 0.25 / h, x));
}

Real cosh(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return cosh(w); });
  const Real h = half_exp_of_magnitude(x);
  return h + 0.25 / h;
}

}  // namespace ricci::cpu::vm
