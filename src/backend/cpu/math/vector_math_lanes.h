// A small language for writing element-wise functions: numbers, masks and bit patterns whose
// operators emit LLVM IR, so that a function reads as its formula.
//
//   Real r = fma(n, -Ln2, x);
//   return select(x > 88.0, c.real(Infinity), r * r);
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/math/vector_math_polynomials.h"

namespace ricci::cpu::vm {

inline constexpr double Infinity = std::numeric_limits<double>::infinity();
inline constexpr double NotANumber = std::numeric_limits<double>::quiet_NaN();

class Real;
class Bits;
class Mask;

/// Where code goes, and which numbers it works on.
struct Lanes {
  llvm::IRBuilderBase& b;
  const TargetInfo& target;
  llvm::Type* type;  ///< float or double, or a vector of them
  bool single;       ///< results need only single precision, even where the type is double

  [[nodiscard]] bool is_f32() const { return type->getScalarType()->isFloatTy(); }
  [[nodiscard]] unsigned width() const { return is_f32() ? 32 : 64; }
  /// Bits of the fraction field.
  [[nodiscard]] unsigned fraction() const { return is_f32() ? 23 : 52; }
  [[nodiscard]] std::int64_t bias() const { return is_f32() ? 127 : 1023; }
  [[nodiscard]] llvm::Type* with_scalar(llvm::Type* scalar) const {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector == nullptr ? scalar
                             : llvm::FixedVectorType::get(scalar, vector->getNumElements());
  }
  [[nodiscard]] llvm::Type* int_type() const { return with_scalar(b.getIntNTy(width())); }
  [[nodiscard]] Real real(double value) const;
  [[nodiscard]] Bits bits(std::uint64_t value) const;
  [[nodiscard]] Mask everywhere() const;
  [[nodiscard]] bool scales_in_one() const {
    return target.avx512 && type->getPrimitiveSizeInBits() == 512;
  }
  /// Chooses by the type the code works in.
  [[nodiscard]] double pick(double f32, double f64) const { return is_f32() ? f32 : f64; }
};

/// i1 lanes.
class Mask {
 public:
  Mask(const Lanes& lanes, llvm::Value* value) : c(&lanes), v(value) {}
  Mask operator&(Mask o) const { return {*c, c->b.CreateAnd(v, o.v)}; }
  Mask operator|(Mask o) const { return {*c, c->b.CreateOr(v, o.v)}; }
  Mask operator^(Mask o) const { return {*c, c->b.CreateXor(v, o.v)}; }
  Mask operator!() const { return {*c, c->b.CreateNot(v)}; }

  const Lanes* c;
  llvm::Value* v;
};

inline Mask Lanes::everywhere() const {
  return {*this, llvm::ConstantInt::getTrue(with_scalar(b.getInt1Ty()))};
}

/// Integer lanes as wide as the numbers.
class Bits {
 public:
  Bits(const Lanes& lanes, llvm::Value* value) : c(&lanes), v(value) {}
  Bits operator+(Bits o) const { return {*c, c->b.CreateAdd(v, o.v)}; }
  Bits operator-(Bits o) const { return {*c, c->b.CreateSub(v, o.v)}; }
  Bits operator&(Bits o) const { return {*c, c->b.CreateAnd(v, o.v)}; }
  Bits operator|(Bits o) const { return {*c, c->b.CreateOr(v, o.v)}; }
  Bits operator^(Bits o) const { return {*c, c->b.CreateXor(v, o.v)}; }
  Bits operator+(std::uint64_t o) const { return *this + c->bits(o); }
  Bits operator-(std::uint64_t o) const { return *this - c->bits(o); }
  Bits operator&(std::uint64_t o) const { return *this & c->bits(o); }
  Bits operator<<(unsigned n) const { return {*c, c->b.CreateShl(v, n)}; }
  Bits operator>>(unsigned n) const { return {*c, c->b.CreateLShr(v, n)}; }
  /// Keeps the sign.
  [[nodiscard]] Bits shift_arithmetic(unsigned n) const { return {*c, c->b.CreateAShr(v, n)}; }
  Mask operator==(Bits o) const { return {*c, c->b.CreateICmpEQ(v, o.v)}; }
  Mask operator!=(Bits o) const { return {*c, c->b.CreateICmpNE(v, o.v)}; }
  /// The highest bit, which is that of a number's sign.
  [[nodiscard]] Mask is_negative() const { return {*c, c->b.CreateICmpSLT(v, c->bits(0).v)}; }
  [[nodiscard]] Real as_real() const;

  const Lanes* c;
  llvm::Value* v;
};

/// Float or double lanes.
class Real {
 public:
  Real(const Lanes& lanes, llvm::Value* value) : c(&lanes), v(value) {}
  Real operator+(Real o) const { return {*c, c->b.CreateFAdd(v, o.v)}; }
  Real operator-(Real o) const { return {*c, c->b.CreateFSub(v, o.v)}; }
  Real operator*(Real o) const { return {*c, c->b.CreateFMul(v, o.v)}; }
  Real operator/(Real o) const { return {*c, c->b.CreateFDiv(v, o.v)}; }
  Real operator+(double o) const { return *this + c->real(o); }
  Real operator-(double o) const { return *this - c->real(o); }
  Real operator*(double o) const { return *this * c->real(o); }
  Real operator/(double o) const { return *this / c->real(o); }
  friend Real operator+(double a, Real b) { return b.c->real(a) + b; }
  friend Real operator-(double a, Real b) { return b.c->real(a) - b; }
  friend Real operator*(double a, Real b) { return b.c->real(a) * b; }
  friend Real operator/(double a, Real b) { return b.c->real(a) / b; }
  Real operator-() const { return {*c, c->b.CreateFNeg(v)}; }
  // Ordered: false when either is NaN.
  Mask operator<(Real o) const { return {*c, c->b.CreateFCmpOLT(v, o.v)}; }
  Mask operator<=(Real o) const { return {*c, c->b.CreateFCmpOLE(v, o.v)}; }
  Mask operator>(Real o) const { return {*c, c->b.CreateFCmpOGT(v, o.v)}; }
  Mask operator>=(Real o) const { return {*c, c->b.CreateFCmpOGE(v, o.v)}; }
  Mask operator==(Real o) const { return {*c, c->b.CreateFCmpOEQ(v, o.v)}; }
  Mask operator<(double o) const { return *this < c->real(o); }
  Mask operator<=(double o) const { return *this <= c->real(o); }
  Mask operator>(double o) const { return *this > c->real(o); }
  Mask operator>=(double o) const { return *this >= c->real(o); }
  Mask operator==(double o) const { return *this == c->real(o); }
  [[nodiscard]] Mask is_nan() const { return {*c, c->b.CreateFCmpUNO(v, v)}; }
  [[nodiscard]] Bits as_bits() const { return {*c, c->b.CreateBitCast(v, c->int_type())}; }

  const Lanes* c;
  llvm::Value* v;
};

inline Real Lanes::real(double value) const {
  return {*this, llvm::ConstantFP::get(type, is_f32() ? static_cast<float>(value) : value)};
}
inline Bits Lanes::bits(std::uint64_t value) const {
  return {*this, llvm::ConstantInt::get(int_type(), is_f32() ? value & 0xffffffffU : value)};
}
inline Real Bits::as_real() const { return {*c, c->b.CreateBitCast(v, c->type)}; }

inline Real select(Mask m, Real a, Real b) { return {*a.c, a.c->b.CreateSelect(m.v, a.v, b.v)}; }
inline Bits select(Mask m, Bits a, Bits b) { return {*a.c, a.c->b.CreateSelect(m.v, a.v, b.v)}; }
inline Real select(Mask m, double a, Real b) { return select(m, b.c->real(a), b); }
inline Real select(Mask m, Real a, double b) { return select(m, a, a.c->real(b)); }

inline Real abs(Real x) { return {*x.c, x.c->b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.v)}; }
inline Real sqrt(Real x) { return {*x.c, x.c->b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x.v)}; }
inline Real copysign(Real magnitude, Real sign) {
  return {*sign.c, sign.c->b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.v, sign.v)};
}
/// The smaller; a NaN in x comes through. One instruction.
inline Real at_most(Real x, double bound) { return select(x.c->real(bound) < x, bound, x); }
inline Real at_least(Real x, double bound) { return select(x.c->real(bound) > x, bound, x); }

/// x·y + z, rounded once where the target can, twice where it cannot.
inline Real fma(Real x, Real y, Real z) {
  if (!x.c->target.fma) return x * y + z;
  return {*x.c, x.c->b.CreateIntrinsic(llvm::Intrinsic::fma, {x.c->type}, {x.v, y.v, z.v})};
}
inline Real fma(Real x, double y, Real z) { return fma(x, x.c->real(y), z); }
inline Real fma(Real x, Real y, double z) { return fma(x, y, x.c->real(z)); }
inline Real fma(Real x, double y, double z) { return fma(x, x.c->real(y), x.c->real(z)); }

/// Every `step`-th coefficient from `first` on, by Horner's rule.
inline Real by_horner(std::span<const double> coefficients, Real x, std::size_t first = 0,
                      std::size_t step = 1) {
  std::size_t k = first + (coefficients.size() - 1 - first) / step * step;
  Real sum = x.c->real(coefficients[k]);
  while (k > first) {
    k -= step;
    sum = fma(sum, x, coefficients[k]);
  }
  return sum;
}

/// The polynomial at x. Long ones as two halves, of even and of odd powers, which the processor
/// works on at the same time: one multiplication more, half the way from x to the result.
inline Real evaluate(std::span<const double> coefficients, Real x) {
  if (coefficients.size() < 5) return by_horner(coefficients, x);
  const Real square = x * x;
  const Real odd = by_horner(coefficients, square, 1, 2);
  return fma(odd, x, by_horner(coefficients, square, 0, 2));
}
inline Real evaluate(const polynomial::Polynomial& p, Real x) {
  return evaluate(x.c->single ? p.single : p.full, x);
}

/// hi + lo, unevaluated: about twice the precision.
struct Pair {
  Real hi;
  Real lo;
};

/// a + b exactly, for |a| ≥ |b| or a = 0.
inline Pair quick_two_sum(Real a, Real b) {
  const Real s = a + b;
  return {s, b - (s - a)};
}
inline Pair two_sum(Real a, Real b) {
  const Real s = a + b;
  const Real t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
/// The upper half of a number's digits; a must be below 2^995 (2^115 in single precision).
inline Real upper_half(Real a) {
  const Real t = a * (a.c->is_f32() ? 4097.0 : 134217729.0);
  return t - (t - a);
}
/// a·b exactly, short of overflow and underflow.
inline Pair two_product(Real a, Real b) {
  const Real p = a * b;
  if (a.c->target.fma) return {p, fma(a, b, -p)};
  const Real ah = upper_half(a);
  const Real bh = upper_half(b);
  const Real al = a - ah;
  const Real bl = b - bh;
  return {p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

/// A whole number near x, |x| < 2^22 (2^51), as a number and as integer lanes.
struct Whole {
  Real number;
  Bits integer;
};
/// x·scale to the nearest integer: adding 1.5·2^23 pushes the fraction out of the register.
inline Whole nearest(Real x, double scale) {
  const Lanes& c = *x.c;
  const Real magic = c.real(c.pick(12582912.0, 6755399441055744.0));
  const Real t = fma(x, c.real(scale), magic);
  return {t - magic, t.as_bits() - magic.as_bits()};
}
/// 2^n for n within the exponents of normal numbers.
inline Real power_of_two(Bits n) {
  const Lanes& c = *n.c;
  return ((n + static_cast<std::uint64_t>(c.bias())) << c.fraction()).as_real();
}
/// AVX-512 has the whole of it as one instruction.
inline Real scale_in_one(Real x, Bits n) {
  const Lanes& c = *x.c;
  const auto which = c.is_f32() ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512
                                : llvm::Intrinsic::x86_avx512_mask_scalef_pd_512;
  llvm::Value* power = c.b.CreateSIToFP(n.v, c.type);
  llvm::Value* all = llvm::ConstantInt::getAllOnesValue(c.b.getIntNTy(512 / c.width()));
  constexpr std::uint32_t CurrentRounding = 4;
  return {c, c.b.CreateIntrinsic(which, {}, {x.v, power, x.v, all, c.b.getInt32(CurrentRounding)})};
}
/// x·2^n for any n the function can meet: in two steps, since 2^n itself may not be a number.
inline Real scale(Real x, Bits n) {
  if (x.c->scales_in_one()) return scale_in_one(x, n);
  // A shift of 64-bit lanes that keeps the sign is slow before AVX-512: shift the biased n.
  const Lanes& c = *x.c;
  const Bits half = c.is_f32() ? n.shift_arithmetic(1) : ((n + 4096U) >> 1) - 2048U;
  return x * power_of_two(half) * power_of_two(n - half);
}

/// 2^n as a product of two numbers; the second is one of two constants, by the sign of n, so x·2^n
/// takes fewer steps than `scale`. Their order matters to an x far from 1.
struct TwoFactors {
  Real first;
  Real second;
};
inline TwoFactors factors_of_power(Bits n, Mask negative) {
  const Lanes& c = *n.c;
  const int shift = c.is_f32() ? 64 : 512;
  const auto exponent_of_one = [&](int more) {
    return c.bits(static_cast<std::uint64_t>(c.bias() + more) << c.fraction());
  };
  const Bits one = select(negative, exponent_of_one(shift), exponent_of_one(-shift));
  const Real second = select(negative, std::ldexp(1.0, -shift), c.real(std::ldexp(1.0, shift)));
  return {((n << c.fraction()) + one).as_real(), second};
}
/// x·2^n, x about 1; `negative` is the sign of n, either for 0.
inline Real scale_near_one(Real x, Bits n, Mask negative) {
  if (x.c->scales_in_one()) return scale_in_one(x, n);
  const TwoFactors power = factors_of_power(n, negative);
  return x * power.first * power.second;
}
/// The same of 1 + p.
inline Real scale_one_and(Real p, Bits n, Mask negative) {
  if (p.c->scales_in_one()) return scale_in_one(p + 1.0, n);
  const TwoFactors power = factors_of_power(n, negative);
  return fma(p, power.first, power.first) * power.second;
}

/// The same function on doubles, rounded once: what single precision cannot do alone.
template <class F>
Real in_double(Real x, F f) {
  const Lanes& c = *x.c;
  const Lanes wide{c.b, c.target, c.with_scalar(c.b.getDoubleTy()), true};
  const Real y = f(Real{wide, c.b.CreateFPExt(x.v, wide.type)});
  return {c, c.b.CreateFPTrunc(y.v, c.type)};
}
template <class F>
Real in_double(Real a, Real b, F f) {
  const Lanes& c = *a.c;
  const Lanes wide{c.b, c.target, c.with_scalar(c.b.getDoubleTy()), true};
  const Real y =
      f(Real{wide, c.b.CreateFPExt(a.v, wide.type)}, Real{wide, c.b.CreateFPExt(b.v, wide.type)});
  return {c, c.b.CreateFPTrunc(y.v, c.type)};
}

}  // namespace ricci::cpu::vm
