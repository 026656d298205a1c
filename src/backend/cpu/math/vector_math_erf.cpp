// The error function and its kin.
#include <numbers>

#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

/// exp(a²)·erfc(a), a ≥ 0: one polynomial after [0, ∞) is mapped to [−1, 1).
Real scaled_erfc(Real a) {
  const Real y = (a - 2.0) / (a + 2.0);
  return (evaluate(polynomial::Erfc, y) + 1.25) / fma(a, 2.0, 1.0);
}

/// e^(−a²·factor) = (1 + p)·2ⁿ; a² counts in full, for an error in it is one in the result many
/// times over.
ExpParts gauss(Real a, double factor) {
  if (a.c->single && !a.c->is_f32()) return exp_less_one(a * a * -factor);
  const Pair square = two_product(a, a);
  return exp_less_one(Pair{square.hi * -factor, square.lo * -factor});
}

Real erfc_of_magnitude(Real a) {
  const ExpParts e = gauss(a, 1);
  const Real g = scaled_erfc(a);
  return scale(fma(e.p, g, g), e.n);
}

/// 1 − 2^(−q(a)): the exponent is smooth enough for one short polynomial.
Real erf_single_far(Real a) {
  const Real q = evaluate(polynomial::ErfcLog2.single, at_most(a, 4));
  const Whole n = nearest(q, -1);
  const Real f = -q - n.number;
  const Real p = fma(f, evaluate(polynomial::Exp2, f), 1.0);
  return 1.0 - p * power_of_two(n.integer);
}

/// x·Φ(x) = max(x, 0) − |x|·E with E = Φ(−|x|). With h = 0.3·|x|, E·e^(x²/2) is 1/(1 + h) times a
/// short polynomial in (h − 1)/(h + 1), so one division does.
Real gelu_single(Real x) {
  const Real a = at_most(abs(x), 14.5);  // beyond, |x|·E is no number but zero
  const Pair square = two_product(a, a * -0.5);
  const ExpParts e = exp_less_one_near(square.hi, square.lo);
  const Real t = 1.0 / fma(a, 0.3, 1.0);
  const Real g = a * t * evaluate(polynomial::NormalTail.single, fma(a, 0.3, -1.0) * t);
  // The exponent is never positive: one half of it can be a constant.
  const Real part = fma(e.p, g, g) * power_of_two(e.n + 64U);
  return fma(part, -0x1p-64, at_least(x, -0.0));
}

}  // namespace

Real erf(Real x) {
  const Real a = abs(x);
  const Real near = fma(x, evaluate(polynomial::Erf, x * x), x);
  const Real far = x.c->is_f32() ? erf_single_far(a) : 1.0 - erfc_of_magnitude(at_most(a, 7));
  return select(a < 1.0, near, copysign(far, x));
}

Real erfc(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return erfc(w); });
  const Real y = erfc_of_magnitude(at_most(abs(x), 28));
  const Real far = select(x < 0.0, 2.0 - y, y);
  if (x.c->single) return far;
  return select(abs(x) < 0.47, 1.0 - fma(x, evaluate(polynomial::Erf, x * x), x), far);
}

Real gelu(Real x) {
  if (x.c->is_f32()) return gelu_single(x);
  // With E = erfc(|x|/√2): x·E/2 to the left, x − x·E/2 to the right.
  const Real bounded = at_least(at_most(x, 40), -40);
  const Real a = abs(bounded);
  const ExpParts e = gauss(a, 0.5);
  const Real half = bounded * 0.5 * scaled_erfc(a * (1 / std::numbers::sqrt2));
  const Real part = scale(fma(e.p, half, half), e.n);
  const Real far = select(x == -Infinity, -0.0, select(x > 0.0, x - part, part));
  if (x.c->single) return far;
  const Real z = x * (1 / std::numbers::sqrt2);
  const Real near = fma(z, evaluate(polynomial::Erf, z * z), z);
  return select(a < 0.66, x * 0.5 * (near + 1.0), far);
}

}  // namespace ricci::cpu::vm
