// The functions of vector_math.h, one by one, and the parts they share.
#pragma once

#include "backend/cpu/math/vector_math_lanes.h"

namespace ricci::cpu::vm {

// vector_math_round.cpp: exact
[[nodiscard]] Real round(Real x);  ///< ties to even
[[nodiscard]] Real floor(Real x);
[[nodiscard]] Real ceil(Real x);
[[nodiscard]] Real trunc(Real x);
[[nodiscard]] Real sign(Real x);
[[nodiscard]] Real relu(Real x);
[[nodiscard]] Real maximum(Real a, Real b);  ///< a NaN comes through; b where they are equal
[[nodiscard]] Real minimum(Real a, Real b);

// vector_math_exp.cpp
/// eˣ = p·2ⁿ with p in [0.7, 1.5); or, for `exp_less_one` and `expm1_parts`, eˣ = (p + 1)·2ⁿ.
struct ExpParts {
  Real p;
  Bits n;
};
/// e^(x + lo); x is within ±2^20, lo tiny beside it.
[[nodiscard]] ExpParts exp_parts(Real x);
/// The same with p less one, which saves a rounding where (1 + p)·y is wanted.
[[nodiscard]] ExpParts exp_less_one(Real x);
[[nodiscard]] ExpParts exp_less_one(Pair x);
/// Of x + correction, to about one unit in the last place of eˣ: cheaper than a pair.
[[nodiscard]] ExpParts exp_less_one_near(Real x, Real correction);
[[nodiscard]] ExpParts expm1_parts(Real x);
[[nodiscard]] Real exp(Real x);
[[nodiscard]] Real exp_not_positive(Real x);  ///< the same for x up to 40
[[nodiscard]] Real exp2(Real x);
[[nodiscard]] Real exp2_of(Whole n, Real f);  ///< 2^(n + f), |f| ≤ 1/2
[[nodiscard]] Real expm1(Real x);
[[nodiscard]] Real sigmoid(Real x);
[[nodiscard]] Real silu(Real x);
[[nodiscard]] Real gelu_approx(Real x);
[[nodiscard]] Real tanh(Real x);
[[nodiscard]] Real sinh(Real x);
[[nodiscard]] Real cosh(Real x);

// vector_math_gates.cpp
[[nodiscard]] Real elu(Real x);
[[nodiscard]] Real selu(Real x);
[[nodiscard]] Real hard_sigmoid(Real x);
[[nodiscard]] Real hard_swish(Real x);
[[nodiscard]] Real mish(Real x);
[[nodiscard]] Real softsign(Real x);

// vector_math_log.cpp
/// x = (1 + f)·2ᵏ with 1 + f in [√½, √2); x is positive and finite.
struct LogParts {
  Real k;
  Real f;
};
[[nodiscard]] LogParts log_parts(Real x);
[[nodiscard]] Real log(Real x);
[[nodiscard]] Real log2(Real x);
[[nodiscard]] Real log1p(Real x);
[[nodiscard]] Real softplus(Real x);
[[nodiscard]] Real asinh(Real x);
[[nodiscard]] Real acosh(Real x);
[[nodiscard]] Real atanh(Real x);

// vector_math_trig.cpp
[[nodiscard]] Real sin(Real x);
[[nodiscard]] Real cos(Real x);
[[nodiscard]] Real tan(Real x);
/// x = n·π/2 + hi + lo, |hi| ≤ π/4; only n mod 4 is right. May branch.
struct Reduced {
  Real hi;
  Real lo;  ///< zero where single precision is enough
  Bits n;
};
[[nodiscard]] Reduced reduce_quadrant(Real x);

// vector_math_arc.cpp
[[nodiscard]] Real atan(Real x);
[[nodiscard]] Real atan2(Real y, Real x);
[[nodiscard]] Real asin(Real x);
[[nodiscard]] Real acos(Real x);

// vector_math_erf.cpp
[[nodiscard]] Real erf(Real x);
[[nodiscard]] Real erfc(Real x);
[[nodiscard]] Real gelu(Real x);

// vector_math_pow.cpp
[[nodiscard]] Real pow(Real x, Real y);
[[nodiscard]] Real hypot(Real a, Real b);

// vector_math_rem.cpp
[[nodiscard]] Real rem(Real x, Real y);  ///< exact; may branch

}  // namespace ricci::cpu::vm
