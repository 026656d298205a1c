// Activations made of one exponential, or of none.
#include "backend/cpu/math/vector_math_functions.h"
#include "rule/activation_constants.h"

namespace ricci::cpu::vm {

Real elu(Real x) { return select(x > 0.0, x, expm1(x)); }

Real selu(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return selu(w); });
  return select(x > 0.0, x, expm1(x) * rule::SeluAlpha) * rule::SeluScale;
}

Real hard_sigmoid(Real x) {
  const Real inside = (x + 3.0) / 6.0;
  return select(x <= -3.0, 0.0, select(x >= 3.0, 1.0, inside));
}

Real hard_swish(Real x) {
  const Real bounded = select(x <= -3.0, -3.0, x);
  return select(x <= -3.0, -0.0, bounded * hard_sigmoid(x));
}

// tanh(ln(1 + w)) = n/(n + 2) with w = eˣ, n = w·(w + 2).
Real mish(Real x) {
  if (x.c->is_f32()) return in_double(x, [](Real w) { return mish(w); });
  const Real w = exp(select(x > 40.0, 40.0, x));
  const Real n = w * (w + 2.0);
  const Real y = x * (n / (n + 2.0));
  if (x.c->single) return select(x == -Infinity, -0.0, y);
  // Far to the left it is x·eˣ, as silu is; where eˣ is subnormal that must not be formed.
  return select(x < -37.0, silu(x), y);
}

Real softsign(Real x) {
  const Real one = copysign(x.c->real(1), x);
  return select(abs(x) == Infinity, one, x / (abs(x) + 1.0));
}

}  // namespace ricci::cpu::vm
