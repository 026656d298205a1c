// Functions of complex numbers as formulas of real functions of their parts, in double. Branches
// and the signs of zeros on branch cuts are those of C's Annex G.
#include <numbers>

#include "ricci/support/error.h"

#include "backend/cpu/codegen/complex_lanes.h"
#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu {
namespace {

using llvm::Value;
using vm::Real;

struct Pair {
  Real re;
  Real im;
};

Pair times_i(Pair z) { return {-z.im, z.re}; }
Pair over_i(Pair z) { return {z.im, -z.re}; }
Pair operator-(Pair z) { return {-z.re, -z.im}; }
Pair select(vm::Mask m, Pair a, Pair b) {
  return {vm::select(m, a.re, b.re), vm::select(m, a.im, b.im)};
}
Pair operator*(Pair a, Pair b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

vm::Mask is_endless(Real x) { return vm::abs(x) == vm::Infinity; }
vm::Mask is_open(Real x) { return is_endless(x) | x.is_nan(); }
Real infinity_with_sign(Real sign) { return vm::copysign(sign.c->real(vm::Infinity), sign); }

// Infinitely far away the formulas below would subtract infinities. The angle there is that of the
// parts that are infinite, taken as 1, over those that are not, taken as 0.
struct FarAway {
  explicit FarAway(Pair z)
      : here(is_endless(z.re) | is_endless(z.im)), re(side(z.re)), im(side(z.im)) {}
  static Real side(Real x) {
    const Real size = vm::select(is_endless(x), 1.0, x.c->real(0));
    return vm::select(x.is_nan(), x, vm::copysign(size, x));
  }
  vm::Mask here;
  Real re;
  Real im;
};

// cosh x and sinh x as `cosh·again` and `sinh·again`: far from zero e^|x|/2 would overflow where
// its product with a sine or cosine does not.
struct Hyperbolic {
  explicit Hyperbolic(Real x)
      : far(vm::abs(x) > 700.0),
        half(vm::exp(vm::select(far, vm::abs(x) * 0.5, 0.0))),
        cosh(vm::select(far, half * 0.5, vm::cosh(x))),
        sinh(vm::select(far, vm::copysign(half * 0.5, x), vm::sinh(x))) {}
  vm::Mask far;
  Real half;
  Real cosh;
  Real sinh;
  [[nodiscard]] Real times(Real f, Real trigonometric) const {
    return f * trigonometric * half;  // half is 1 where x is not far
  }
};

// `side`: the sign an infinity has that may have either.
Pair sinh_of(Pair z, double side = 1) {
  const Hyperbolic h(z.re);
  const Real sine = vm::sin(z.im);
  const Real cosine = vm::cos(z.im);
  const Real im = h.times(h.cosh, sine);
  // Where there is no angle, zero and infinity are what they are in every direction.
  const vm::Mask any_angle = is_open(z.im) & ((z.re == 0.0) | is_endless(z.re));
  const Real there = vm::select(z.re == 0.0, z.re, vm::abs(z.re) * side);
  return {vm::select(any_angle, there, h.times(h.sinh, cosine)), vm::select(z.im == 0.0, z.im, im)};
}

Pair cosh_of(Pair z) {
  const Hyperbolic h(z.re);
  const Real sine = vm::sin(z.im);
  const Real cosine = vm::cos(z.im);
  const Real im = h.times(h.sinh, sine);
  const vm::Mask no_angle = is_open(z.im);
  const Real re = h.times(h.cosh, cosine);
  return {vm::select(no_angle & is_endless(z.re), vm::Infinity, re),
          vm::select(no_angle & (z.re == 0.0), z.re,
                     vm::select(z.im == 0.0, vm::copysign(z.re.c->real(1), z.re) * z.im, im))};
}

// (sinh x cosh x + i sin y cos y)/(sinh² x + cos² y); beyond 20 the real part is ±1, and the other
// 4 sin y cos y e^-2|x|.
Pair tanh_of(Pair z) {
  const vm::Mask far = vm::abs(z.re) > 20.0;
  const Real x = vm::select(far, vm::copysign(z.re.c->real(20), z.re), z.re);
  const Real s = vm::sinh(x);
  const Real sine = vm::sin(z.im);
  const Real cosine = vm::cos(z.im);
  const Real turn = sine * cosine;
  const Real size = s * s + cosine * cosine;
  const Real tail = 4.0 * turn * vm::exp(vm::abs(z.re) * -2.0);
  const Real im = vm::select(far, tail, turn / size);
  const Real one = vm::copysign(z.re.c->real(1), z.re);
  // There is no angle where y is not finite: y - y is NaN then, and zero elsewhere.
  const Real re = vm::select(far, one, s * vm::cosh(x) / size) + (z.im - z.im);
  const Real nothing = vm::copysign(z.im.c->real(0), z.im);
  return {vm::select(z.re == 0.0, z.re, vm::select(is_endless(z.re), one, re)),
          vm::select(z.im == 0.0, z.im, vm::select(is_endless(z.re) & is_open(z.im), nothing, im))};
}

// re: ln(1 + 4|x|/((1 - |x|)² + y²))/4, with the sign of x; (ln 2 - ln |y|)/2 above and below 1,
// where y² may be too small for a number.
Pair atanh_of(Pair z) {
  const Real x = vm::abs(z.re);
  const Real left = 1.0 - x;
  const vm::Mask beside_one = (left == 0.0) & (vm::abs(z.im) < 1e-9);
  const Real usual = vm::log1p(4.0 * x / (left * left + z.im * z.im)) * 0.25;
  const Real near = (std::numbers::ln2 - vm::log(vm::abs(z.im))) * 0.5;
  const Real re = vm::select(beside_one, near, usual);
  const Real im = vm::atan2(2.0 * z.im, left * (1.0 + x) - z.im * z.im) * 0.5;
  const vm::Mask far = FarAway(z).here;
  const Real quarter = vm::copysign(z.im.c->real(std::numbers::pi / 2), z.im);
  return {vm::copysign(vm::select(far | (x == 0.0), 0.0, re), z.re),
          vm::select(far, vm::select(z.im.is_nan(), z.im, quarter), im)};
}

Pair exp2_of(Pair z) {
  const Real size = vm::exp2(z.re);
  const Real angle = z.im * std::numbers::ln2;
  const Real im = size * vm::sin(angle);
  return {size * vm::cos(angle), vm::select(z.im == 0.0, z.im, im)};
}

// (e^x - 1)·cos y - 2 sin²(y/2) + i·e^x·sin y
Pair expm1_of(Pair z) {
  const Real half = vm::sin(z.im * 0.5);
  const Real re = vm::expm1(z.re) * vm::cos(z.im) - 2.0 * (half * half);
  const Real im = vm::exp(z.re) * vm::sin(z.im);
  return {vm::select(z.im == 0.0, vm::expm1(z.re), re), vm::select(z.im == 0.0, z.im, im)};
}

// Arc functions, by the square roots Kahan writes them with: no part cancels.
struct Roots {
  Pair a;
  Pair b;
};
Pair acosh_of(Pair z, Roots r) {  // a = √(z - 1), b = √(z + 1)
  const FarAway far(z);
  const Real quarter = z.re.c->real(std::numbers::pi / 2);
  const Real angle = vm::select(z.re == 0.0, quarter, vm::atan2(vm::abs(far.im), far.re));
  const Real re = vm::asinh(r.a.re * r.b.re + r.a.im * r.b.im);
  const Real sign = vm::select(z.im.is_nan(), 1.0, z.im);
  return {vm::select(far.here, vm::Infinity, re),
          vm::select(far.here | (z.re == 0.0), vm::copysign(angle, sign),
                     2.0 * vm::atan2(r.a.im, r.b.re))};
}
Pair acos_of(Pair z, Roots r) {  // a = √(1 - z), b = √(1 + z)
  const FarAway far(z);
  const Real quarter = z.re.c->real(std::numbers::pi / 2);
  const Real re =
      vm::select(far.here, vm::atan2(vm::abs(far.im), far.re), 2.0 * vm::atan2(r.a.re, r.b.re));
  const Real im = vm::asinh(r.b.re * r.a.im - r.b.im * r.a.re);
  return {vm::select(z.re == 0.0, quarter, re),
          vm::select(far.here, -infinity_with_sign(z.im), im)};
}
Pair asin_of(Pair z, Roots r) {
  const FarAway far(z);
  const Real re = vm::select(far.here, vm::atan2(far.re, vm::abs(far.im)),
                             vm::atan2(z.re, r.a.re * r.b.re - r.a.im * r.b.im));
  const Real im = vm::asinh(r.a.re * r.b.im - r.a.im * r.b.re);
  return {vm::select(z.re == 0.0, z.re, re), vm::select(far.here, infinity_with_sign(z.im), im)};
}

}  // namespace

Value* ComplexLanes::modulus(Value* x) {
  const Parts z = parts(x);
  const vm::Lanes lanes{b_, target_, z.real->getType(), false};
  Value* size = vm::hypot(Real(lanes, z.real), Real(lanes, z.imaginary)).v;
  llvm::Type* type = real_part(x)->getType();
  return size->getType() == type ? size : b_.CreateFPTrunc(size, type);
}

// NaN in some part, or finite in both.
Value* ComplexLanes::any_part(UnaryKind test, Value* x) {
  Value* real = real_part(x);
  Value* imaginary = imaginary_part(x);
  const vm::Lanes lanes{b_, target_, real->getType(), false};
  const Real a(lanes, real);
  const Real b(lanes, imaginary);
  if (test == UnaryKind::IsNan) return (a.is_nan() | b.is_nan()).v;
  return ((vm::abs(a) < vm::Infinity) & (vm::abs(b) < vm::Infinity)).v;
}

// e^(b·ln a); 1 for b = 0, and 0 to a power with a positive real part is 0.
ComplexLanes::Parts ComplexLanes::power(Parts a, Parts b) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  const vm::Lanes lanes{b_, target_, a.real->getType(), false};
  const auto pair = [&](Parts p) { return Pair{{lanes, p.real}, {lanes, p.imaginary}}; };
  const Pair base = pair(a);
  const Pair exponent = pair(b);
  const auto is_zero = [](Pair z) { return (z.re == 0.0) & (z.im == 0.0); };
  const Pair turned = exponent * pair(logarithm(a));
  Pair out = pair(exponential({turned.re.v, turned.im.v}));
  const Real nothing = vm::select(exponent.re > 0.0, 0.0, lanes.real(vm::NotANumber));
  out = select(is_zero(base), {nothing, lanes.real(0)}, out);
  out = select(is_zero(exponent), {lanes.real(1), lanes.real(0)}, out);
  return {out.re.v, out.im.v};
}

ComplexLanes::Parts ComplexLanes::function(UnaryKind kind, Parts x, bool wide) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(b_);
  b_.clearFastMathFlags();
  // Of c64 no more digits are kept than single precision has.
  const vm::Lanes lanes{b_, target_, x.real->getType(), !wide};
  const Pair z{{lanes, x.real}, {lanes, x.imaginary}};
  const Real one = lanes.real(1);
  const Parts unit{one.v, lanes.real(0).v};
  const auto pair = [&](Parts p) { return Pair{{lanes, p.real}, {lanes, p.imaginary}}; };
  const auto given = [](Pair p) { return Parts{p.re.v, p.im.v}; };
  const auto root_of = [&](Real re, Real im) { return pair(root({re.v, im.v})); };
  const auto around = [&](Pair p) {  // √(1 - p), √(1 + p)
    return Roots{root_of(1.0 - p.re, -p.im), root_of(1.0 + p.re, p.im)};
  };
  switch (kind) {
    case UnaryKind::Exp: return exponential(x);
    case UnaryKind::Log: return logarithm(x);
    case UnaryKind::Sqrt: return root(x);
    case UnaryKind::Rsqrt: return quotient(unit, root(x), wide);
    case UnaryKind::Reciprocal: return quotient(unit, x, wide);
    case UnaryKind::Sinh: return given(sinh_of(z));
    case UnaryKind::Cosh: return given(cosh_of(z));
    case UnaryKind::Tanh: return given(tanh_of(z));
    case UnaryKind::Sin: return given(over_i(sinh_of(times_i(z), -1)));
    case UnaryKind::Cos: return given(cosh_of(times_i(z)));
    case UnaryKind::Tan: return given(over_i(tanh_of(times_i(z))));
    case UnaryKind::Atanh: return given(atanh_of(z));
    case UnaryKind::Atan: return given(over_i(atanh_of(times_i(z))));
    case UnaryKind::Acos: return given(acos_of(z, around(z)));
    case UnaryKind::Asin: return given(asin_of(z, around(z)));
    case UnaryKind::Asinh: {
      const Pair turned = over_i(z);
      return given(times_i(asin_of(turned, around(turned))));
    }
    case UnaryKind::Acosh:
      return given(acosh_of(z, {root_of(z.re - 1.0, z.im), root_of(z.re + 1.0, z.im)}));
    case UnaryKind::Exp2: return given(exp2_of(z));
    case UnaryKind::Expm1: return given(expm1_of(z));
    case UnaryKind::Log2: {
      const Pair l = pair(logarithm(x));
      return given({l.re / std::numbers::ln2, l.im / std::numbers::ln2});
    }
    case UnaryKind::Log1p: {
      const Pair far = pair(logarithm({(1.0 + z.re).v, x.imaginary}));
      const vm::Mask near = (vm::abs(z.re) < 0.5) & (vm::abs(z.im) < 0.5);
      const Real more = vm::select(near, z.re * (2.0 + z.re) + z.im * z.im, 0.0);
      return given({vm::select(near, vm::log1p(more) * 0.5, far.re), far.im});
    }
    case UnaryKind::Sigmoid: {
      // Of e^z and e^-z the one that does not overflow.
      const vm::Mask right = z.re >= 0.0;
      const Pair e = pair(exponential(given(select(right, -z, z))));
      const Pair d = pair(quotient(unit, {(1.0 + e.re).v, e.im.v}, wide));
      return given(select(right, d, e * d));
    }
    default: break;  // see the dtypes of its row
  }
  throw InternalError("a function of complex numbers has no code");
}

}  // namespace ricci::cpu
