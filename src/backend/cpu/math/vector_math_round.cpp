// Functions that are exact.
#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

Real whole_by_instruction(Real x, llvm::Intrinsic::ID id) {
  return {*x.c, x.c->b.CreateUnaryIntrinsic(id, x.v)};
}

}  // namespace

// Without SSE4.1 the intrinsics would be calls of the C library.

Real round(Real x) {
  if (x.c->target.sse41) return whole_by_instruction(x, llvm::Intrinsic::roundeven);
  // From 2^23 (2^52) on there is no fraction; below, adding that pushes it out.
  const Lanes& c = *x.c;
  const Real ground = c.real(c.pick(0x1p23, 0x1p52));
  const Real a = abs(x);
  return select(a < ground, copysign((a + ground) - ground, x), x);
}

Real floor(Real x) {
  if (x.c->target.sse41) return whole_by_instruction(x, llvm::Intrinsic::floor);
  const Real r = round(x);
  return copysign(select(r > x, r - 1.0, r), x);
}

Real ceil(Real x) {
  if (x.c->target.sse41) return whole_by_instruction(x, llvm::Intrinsic::ceil);
  const Real r = round(x);
  return copysign(select(r < x, r + 1.0, r), x);
}

Real trunc(Real x) {
  if (x.c->target.sse41) return whole_by_instruction(x, llvm::Intrinsic::trunc);
  return copysign(floor(abs(x)), x);
}

Real sign(Real x) {
  const Real one = select(x > 0.0, 1.0, x.c->real(0));
  return select(x.is_nan(), x, select(x < 0.0, -1.0, one));
}

Real relu(Real x) { return select(x <= 0.0, 0.0, x); }

// A comparison with NaN is false, so the inner selections, which are one instruction, give b. Not a
// itself where that is NaN: the two selections would become one, of four instructions.
Real maximum(Real a, Real b) { return select(a.is_nan(), NotANumber, select(a > b, a, b)); }

Real minimum(Real a, Real b) { return select(a.is_nan(), NotANumber, select(a < b, a, b)); }

}  // namespace ricci::cpu::vm
