// Quotients and functions of complex numbers, in double: real and imaginary parts in vectors of
// their own. Special values are those of C's Annex G.
#include <limits>
#include <numbers>
#include <vector>

#include <llvm/IR/Intrinsics.h>

#include "ricci/support/error.h"

#include "backend/cpu/codegen/complex_lanes.h"
#include "backend/cpu/math/vector_math.h"

namespace ricci::cpu {
namespace {

using llvm::Value;

// Short names for what formulas are written in.
class Doubles {
 public:
  Doubles(llvm::IRBuilder<>& b, const TargetInfo& target, llvm::Type* type)
      : b_(b), target_(target), type_(type) {}

  [[nodiscard]] Value* number(double v) const { return llvm::ConstantFP::get(type_, v); }
  [[nodiscard]] Value* infinity() const { return llvm::ConstantFP::getInfinity(type_); }
  [[nodiscard]] Value* size(Value* x) const {
    return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  }
  [[nodiscard]] Value* is_nan(Value* x) const { return b_.CreateFCmpUNO(x, x); }
  [[nodiscard]] Value* is_infinite(Value* x) const { return b_.CreateFCmpOEQ(size(x), infinity()); }
  [[nodiscard]] Value* is_finite(Value* x) const { return b_.CreateFCmpOLT(size(x), infinity()); }
  [[nodiscard]] Value* with_sign(Value* x, Value* sign) const {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign);
  }
  /// 1 or 0, with the sign of x.
  [[nodiscard]] Value* boxed(Value* x) const {
    return with_sign(b_.CreateSelect(is_infinite(x), number(1), number(0)), x);
  }
  [[nodiscard]] Value* unary(UnaryKind kind, Value* x) const {
    return emit_unary(b_, kind, x, target_);
  }
  [[nodiscard]] Value* binary(BinaryKind kind, Value* x, Value* y) const {
    return emit_binary(b_, kind, x, y, target_);
  }

 private:
  llvm::IRBuilder<>& b_;
  const TargetInfo& target_;
  llvm::Type* type_;
};

llvm::Type* doubles_like(llvm::IRBuilder<>& b, Value* x) {
  const auto* v = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (v == nullptr) return b.getDoubleTy();
  return llvm::FixedVectorType::get(b.getDoubleTy(), v->getNumElements());
}

}  // namespace

ComplexLanes::Parts ComplexLanes::parts(Value* x) {
  Value* both = floats(x);
  const auto count = llvm::cast<llvm::FixedVectorType>(both->getType())->getNumElements() / 2;
  const auto part = [&](int which) {
    Value* out = nullptr;
    if (count == 1) {
      out = b_.CreateExtractElement(both, static_cast<std::uint64_t>(which));
    } else {
      std::vector<int> lanes;
      for (int i = 0; i < static_cast<int>(count); ++i) lanes.push_back(2 * i + which);
      out = b_.CreateShuffleVector(both, lanes);
    }
    llvm::Type* type = doubles_like(b_, out);
    return out->getType() == type ? out : b_.CreateFPExt(out, type);
  };
  Value* real = part(0);
  return {real, part(1)};
}

Value* ComplexLanes::woven(Parts z, llvm::Type* like) {
  const bool wide = like->getScalarSizeInBits() == 128;
  const auto narrowed = [&](Value* x) {
    if (wide) return x;
    llvm::Type* type = b_.getFloatTy();
    if (const auto* v = llvm::dyn_cast<llvm::FixedVectorType>(x->getType())) {
      type = llvm::FixedVectorType::get(type, v->getNumElements());
    }
    return b_.CreateFPTrunc(x, type);
  };
  Value* real = narrowed(z.real);
  Value* imaginary = narrowed(z.imaginary);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(real->getType());
  if (vector == nullptr) {
    Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(real->getType(), 2));
    pair = b_.CreateInsertElement(pair, real, std::uint64_t{0});
    return numbers(b_.CreateInsertElement(pair, imaginary, std::uint64_t{1}));
  }
  std::vector<int> lanes;
  const auto count = static_cast<int>(vector->getNumElements());
  for (int i = 0; i < count; ++i) {
    lanes.push_back(i);
    lanes.push_back(count + i);
  }
  return numbers(b_.CreateShuffleVector(real, imaginary, lanes));
}

// Smith's way: both parts over the larger one of the divisor's. Powers of two bring c128 into the
// middle of the range first, where nothing overflows or loses digits.
ComplexLanes::Parts ComplexLanes::quotient(Parts n, Parts d, bool wide) {
  const Doubles f(b_, target_, n.real->getType());
  Parts m = n;
  Value* back = f.number(1);
  if (wide) {
    const auto larger = [&](Parts z) {
      Value* u = f.size(z.real);
      Value* v = f.size(z.imaginary);
      return b_.CreateSelect(b_.CreateFCmpOLT(u, v), v, u);
    };
    const auto above = [&](Value* v, double bound) { return b_.CreateFCmpOGT(v, f.number(bound)); };
    const auto below = [&](Value* v, double bound) { return b_.CreateFCmpOLT(v, f.number(bound)); };
    Value* top = larger(n);
    Value* bottom = larger(d);
    // A large divisor, or a small number, with the other; a large number alone, and back again. The
    // divisor's smaller part must not vanish: an infinite number over it is infinite.
    Value* large_divisor = above(bottom, 0x1p1000);
    Value* large = b_.CreateAnd(b_.CreateNot(large_divisor),
                                b_.CreateAnd(above(top, 0x1p1000), above(bottom, 0x1p-700)));
    Value* small = b_.CreateAnd(b_.CreateOr(below(bottom, 0x1p-900), below(top, 0x1p-900)),
                                below(bottom, 0x1p800));
    Value* both = b_.CreateSelect(large_divisor, f.number(0.5),
                                  b_.CreateSelect(small, f.number(0x1p130), f.number(1)));
    Value* over = b_.CreateSelect(large, f.number(0.5), both);
    both = b_.CreateSelect(large, f.number(1), both);
    back = b_.CreateSelect(large, f.number(2), back);
    // Over a small divisor a large number must not become infinite: parts that are zero stay so.
    Value* far = b_.CreateAnd(b_.CreateAnd(small, above(top, 0x1p800)),
                              b_.CreateAnd(f.is_finite(n.real), f.is_finite(n.imaginary)));
    over = b_.CreateSelect(far, f.number(1), over);
    back = b_.CreateSelect(far, f.number(0x1p130), back);
    d = {b_.CreateFMul(d.real, both), b_.CreateFMul(d.imaginary, both)};
    m = {b_.CreateFMul(m.real, over), b_.CreateFMul(m.imaginary, over)};
  }
  Value* swap = b_.CreateFCmpOLT(f.size(d.real), f.size(d.imaginary));
  Value* major = b_.CreateSelect(swap, d.imaginary, d.real);
  Value* minor = b_.CreateSelect(swap, d.real, d.imaginary);
  Value* ratio = b_.CreateFDiv(minor, major);
  Value* size = b_.CreateFAdd(major, b_.CreateFMul(minor, ratio));
  // (a + ib)/(c + id) with r = d/c: (a + br, b - ar)/(c + dr); else with r = c/d: (ar + b, br - a).
  const auto times = [&](Value* v) {
    // A ratio that has lost digits: the other order of the same product. That of 0 has none.
    Value* lost =
        b_.CreateAnd(b_.CreateFCmpOLT(f.size(ratio), f.number(std::numeric_limits<double>::min())),
                     b_.CreateFCmpONE(minor, f.number(0)));
    Value* other = b_.CreateFMul(minor, b_.CreateFDiv(v, major));
    return b_.CreateSelect(lost, other, b_.CreateFMul(v, ratio));
  };
  Value* ar = times(m.real);
  Value* br = times(m.imaginary);
  Value* real =
      b_.CreateFAdd(b_.CreateSelect(swap, ar, m.real), b_.CreateSelect(swap, m.imaginary, br));
  Value* imaginary =
      b_.CreateFSub(b_.CreateSelect(swap, br, m.imaginary), b_.CreateSelect(swap, m.real, ar));
  const auto scaled = [&](Value* v) { return b_.CreateFMul(b_.CreateFDiv(v, size), back); };
  const Parts q{scaled(real), scaled(imaginary)};
  return recovered(q, m, d);
}

// Infinities that came out as NaN in both parts, as Annex G has them.
ComplexLanes::Parts ComplexLanes::recovered(Parts q, Parts n, Parts d) {
  const Doubles f(b_, target_, q.real->getType());
  Value* lost = b_.CreateAnd(f.is_nan(q.real), f.is_nan(q.imaginary));
  const auto zero = [&](Value* v) { return b_.CreateFCmpOEQ(v, f.number(0)); };
  Value* by_zero =
      b_.CreateAnd(b_.CreateAnd(zero(d.real), zero(d.imaginary)),
                   b_.CreateNot(b_.CreateAnd(f.is_nan(n.real), f.is_nan(n.imaginary))));
  Value* from_infinite =
      b_.CreateAnd(b_.CreateOr(f.is_infinite(n.real), f.is_infinite(n.imaginary)),
                   b_.CreateAnd(f.is_finite(d.real), f.is_finite(d.imaginary)));
  Value* by_infinite = b_.CreateAnd(b_.CreateOr(f.is_infinite(d.real), f.is_infinite(d.imaginary)),
                                    b_.CreateAnd(f.is_finite(n.real), f.is_finite(n.imaginary)));
  Value* infinite = f.with_sign(f.infinity(), d.real);
  // a·c + b·d and b·c - a·d
  const auto times_conjugate = [&](Parts x, Parts y) {
    Value* real =
        b_.CreateFAdd(b_.CreateFMul(x.real, y.real), b_.CreateFMul(x.imaginary, y.imaginary));
    Value* imaginary =
        b_.CreateFSub(b_.CreateFMul(x.imaginary, y.real), b_.CreateFMul(x.real, y.imaginary));
    return Parts{real, imaginary};
  };
  const Parts large = times_conjugate({f.boxed(n.real), f.boxed(n.imaginary)}, d);
  const Parts small = times_conjugate(n, {f.boxed(d.real), f.boxed(d.imaginary)});
  const auto chosen = [&](Value* plain, Value* top, Value* of_large, Value* of_small) {
    Value* out = b_.CreateSelect(by_infinite, b_.CreateFMul(f.number(0), of_small), plain);
    out = b_.CreateSelect(from_infinite, b_.CreateFMul(f.infinity(), of_large), out);
    out = b_.CreateSelect(by_zero, b_.CreateFMul(infinite, top), out);
    return b_.CreateSelect(lost, out, plain);
  };
  return {chosen(q.real, n.real, large.real, small.real),
          chosen(q.imaginary, n.imaginary, large.imaginary, small.imaginary)};
}

// e^a·(cos b + i sin b); half the exponent at a time where all of it would overflow.
ComplexLanes::Parts ComplexLanes::exponential(Parts z) {
  const Doubles f(b_, target_, z.real->getType());
  Value* large = b_.CreateFCmpOGT(z.real, f.number(700));
  Value* part = b_.CreateSelect(large, b_.CreateFMul(z.real, f.number(0.5)), z.real);
  Value* e = f.unary(UnaryKind::Exp, part);
  Value* again = b_.CreateSelect(large, e, f.number(1));
  Value* cos = f.unary(UnaryKind::Cos, z.imaginary);
  Value* sin = f.unary(UnaryKind::Sin, z.imaginary);
  const auto times = [&](Value* v) { return b_.CreateFMul(b_.CreateFMul(v, e), again); };
  Parts out{times(cos), times(sin)};
  Value* whole = b_.CreateFMul(e, again);
  Value* is_real = b_.CreateFCmpOEQ(z.imaginary, f.number(0));
  Value* turning = b_.CreateNot(f.is_finite(z.imaginary));
  // e^-inf is 0 whichever way it turns; e^inf is infinite.
  Value* none = b_.CreateAnd(
      turning, b_.CreateFCmpOEQ(z.real, f.number(-std::numeric_limits<double>::infinity())));
  Value* endless = b_.CreateAnd(turning, b_.CreateFCmpOEQ(z.real, f.infinity()));
  out.real = b_.CreateSelect(is_real, whole, b_.CreateSelect(endless, f.infinity(), out.real));
  out.real = b_.CreateSelect(none, f.number(0), out.real);
  out.imaginary = b_.CreateSelect(is_real, z.imaginary, out.imaginary);
  out.imaginary = b_.CreateSelect(none, f.with_sign(f.number(0), z.imaginary), out.imaginary);
  return out;
}

// ln |z| + i·arg z. Near |z| = 1 by what |z|² is more than 1: the error stays that of
// numbers near 1.
ComplexLanes::Parts ComplexLanes::logarithm(Parts z) {
  const Doubles f(b_, target_, z.real->getType());
  Value* a = f.size(z.real);
  Value* b = f.size(z.imaginary);
  Value* order = b_.CreateFCmpOLT(a, b);
  Value* large = b_.CreateSelect(order, b, a);
  Value* small = b_.CreateSelect(order, a, b);
  Value* near =
      b_.CreateAnd(b_.CreateFCmpOGT(large, f.number(0.5)), b_.CreateFCmpOLT(large, f.number(2)));
  Value* more = b_.CreateFAdd(
      b_.CreateFMul(b_.CreateFSub(large, f.number(1)), b_.CreateFAdd(large, f.number(1))),
      b_.CreateFMul(small, small));
  Value* by_more = b_.CreateFMul(
      f.number(0.5), f.unary(UnaryKind::Log1p, b_.CreateSelect(near, more, f.number(0))));
  // At the ends of the range the length would be beyond it, or lose digits.
  Value* is_large = b_.CreateFCmpOGT(large, f.number(0x1p1000));
  Value* is_small = b_.CreateFCmpOLT(large, f.number(0x1p-900));
  const auto either = [&](double at_large, double at_small, double between) {
    return b_.CreateSelect(is_large, f.number(at_large),
                           b_.CreateSelect(is_small, f.number(at_small), f.number(between)));
  };
  Value* by = either(0x1p-100, 0x1p200, 1);
  Value* length =
      f.binary(BinaryKind::Hypot, b_.CreateFMul(z.real, by), b_.CreateFMul(z.imaginary, by));
  Value* real = b_.CreateFAdd(f.unary(UnaryKind::Log, length),
                              either(100 * std::numbers::ln2, -200 * std::numbers::ln2, 0));
  Value* angle = f.binary(BinaryKind::Atan2, z.imaginary, z.real);
  return {b_.CreateSelect(near, by_more, real), angle};
}

// t = √((|a| + |z|)/2); √z is t + ib/2t to the right of the axis and |b|/2t ± it to its left.
ComplexLanes::Parts ComplexLanes::root(Parts z) {
  const Doubles f(b_, target_, z.real->getType());
  Value* a = f.size(z.real);
  Value* b = f.size(z.imaginary);
  Value* large = b_.CreateSelect(b_.CreateFCmpOLT(a, b), b, a);
  // Powers of four: their roots are exact.
  Value* is_large = b_.CreateFCmpOGT(large, f.number(0x1p1000));
  Value* is_small = b_.CreateFCmpOLT(large, f.number(0x1p-900));
  const auto scale = [&](double down, double up) {
    return b_.CreateSelect(is_large, f.number(down),
                           b_.CreateSelect(is_small, f.number(up), f.number(1)));
  };
  Value* by = scale(0x1p-200, 0x1p200);
  Value* back = scale(0x1p100, 0x1p-100);
  Value* real = b_.CreateFMul(a, by);
  Value* imaginary = b_.CreateFMul(b, by);
  Value* length = f.binary(BinaryKind::Hypot, real, imaginary);
  Value* half = b_.CreateFMul(b_.CreateFAdd(real, length), f.number(0.5));
  Value* t = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, half);
  Value* other = b_.CreateFDiv(imaginary, b_.CreateFMul(t, f.number(2)));
  // Zero has no direction to divide by.
  other = b_.CreateSelect(b_.CreateFCmpOEQ(half, f.number(0)), f.number(0), other);
  t = b_.CreateFMul(t, back);
  other = b_.CreateFMul(other, back);
  Value* left = b_.CreateFCmpOLT(z.real, f.number(0));
  Parts out{b_.CreateSelect(left, other, t), b_.CreateSelect(left, t, other)};
  Value* endless = f.is_infinite(z.imaginary);
  out.real = b_.CreateSelect(endless, f.infinity(), out.real);
  out.imaginary = b_.CreateSelect(endless, f.infinity(), out.imaginary);
  out.imaginary = f.with_sign(out.imaginary, z.imaginary);
  return out;
}

}  // namespace ricci::cpu
