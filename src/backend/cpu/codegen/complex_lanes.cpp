#include "backend/cpu/codegen/complex_lanes.h"

#include <bit>
#include <vector>

#include <llvm/IR/Intrinsics.h>

#include "ricci/support/error.h"

#include "backend/cpu/math/vector_math_branch.h"

namespace ricci::cpu {
namespace {

using llvm::Value;

unsigned lane_count(llvm::Type* type) {
  const auto* v = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return v == nullptr ? 1 : v->getNumElements();
}

// `element` in so many lanes: what one lane holds is no vector.
llvm::Type* in_lanes(llvm::Type* element, unsigned lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, lanes);
}

bool is_wide(Value* x) { return x->getType()->getScalarSizeInBits() == 128; }

// Integer lanes of half or twice the width.
llvm::Type* resized(Value* x, bool wider) {
  const unsigned bits = x->getType()->getScalarSizeInBits();
  return in_lanes(llvm::IntegerType::get(x->getContext(), wider ? bits * 2 : bits / 2),
                  lane_count(x->getType()));
}

Value* as_doubles(llvm::IRBuilderBase& b, Value* x) {
  if (x->getType()->getScalarType()->isDoubleTy()) return x;
  return b.CreateFPExt(x, in_lanes(b.getDoubleTy(), lane_count(x->getType())));
}
Value* rounded_to(llvm::IRBuilderBase& b, Value* x, llvm::Type* type) {
  return x->getType() == type ? x : b.CreateFPTrunc(x, type);
}

// Lane i of the result is lane pick(i) of x and y, which are counted through.
template <class F>
Value* shuffled(llvm::IRBuilderBase& b, Value* x, Value* y, F pick) {
  std::vector<int> lanes(lane_count(x->getType()));
  for (int i = 0; i < static_cast<int>(lanes.size()); ++i) {
    lanes[static_cast<std::size_t>(i)] = pick(i);
  }
  return b.CreateShuffleVector(x, y, lanes);
}

// Real parts of x and imaginary parts of y.
Value* alternating(llvm::IRBuilderBase& b, Value* x, Value* y) {
  const auto count = static_cast<int>(lane_count(x->getType()));
  return shuffled(b, x, y, [&](int i) { return i % 2 == 0 ? i : count + i; });
}

// (a + ib)(c + id) = ac - bd + i(ad + bc), in pairs; the first terms and the last on their own.
struct Terms {
  Value* first;   ///< ac, ad
  Value* second;  ///< bd, bc
};
Terms terms_of(llvm::IRBuilderBase& b, Value* x, Value* y) {
  Value* real = shuffled(b, x, x, [](int i) { return i & ~1; });
  Value* imaginary = shuffled(b, x, x, [](int i) { return i | 1; });
  Value* swapped = shuffled(b, y, y, [](int i) { return i ^ 1; });
  return {b.CreateFMul(real, y), b.CreateFMul(imaginary, swapped)};
}
Value* joined(llvm::IRBuilderBase& b, Terms t) {
  return alternating(b, b.CreateFSub(t.first, t.second), b.CreateFAdd(t.first, t.second));
}

Value* is_infinite(llvm::IRBuilderBase& b, Value* x) {
  Value* size = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  return b.CreateFCmpOEQ(size, llvm::ConstantFP::getInfinity(x->getType()));
}
// The number with the sign of x in every lane.
Value* with_sign(llvm::IRBuilderBase& b, Value* number, Value* x) {
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, number, x);
}
// Infinities become one, all else zero.
Value* boxed(llvm::IRBuilderBase& b, Value* x) {
  llvm::Type* type = x->getType();
  Value* size = b.CreateSelect(is_infinite(b, x), llvm::ConstantFP::get(type, 1.0),
                               llvm::ConstantFP::get(type, 0.0));
  return with_sign(b, size, x);
}
Value* nan_as_zero(llvm::IRBuilderBase& b, Value* x) {
  Value* zero = with_sign(b, llvm::ConstantFP::get(x->getType(), 0.0), x);
  return b.CreateSelect(b.CreateFCmpUNO(x, x), zero, x);
}

// The product of two pairs of doubles, with what Annex G asks for when both parts are NaN: an
// infinite factor, or an infinite term, makes the product infinite.
void fill_product_function(llvm::Function& function) {
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(function.getContext(), "entry", &function));
  Value* x = function.getArg(0);
  Value* y = function.getArg(1);
  const Terms terms = terms_of(b, x, y);
  Value* plain = joined(b, terms);
  Value* lost = b.CreateAndReduce(b.CreateFCmpUNO(plain, plain));
  Value* x_infinite = b.CreateOrReduce(is_infinite(b, x));
  Value* y_infinite = b.CreateOrReduce(is_infinite(b, y));
  Value* term_infinite =
      b.CreateOrReduce(b.CreateOr(is_infinite(b, terms.first), is_infinite(b, terms.second)));
  // An infinite factor is boxed; NaNs of the other, or of both where only terms are infinite, are
  // zeros. Boxing makes zeros of them too.
  Value* left = b.CreateSelect(x_infinite, boxed(b, x), nan_as_zero(b, x));
  Value* right = b.CreateSelect(y_infinite, boxed(b, y), nan_as_zero(b, y));
  Value* infinite = b.CreateFMul(joined(b, terms_of(b, left, right)),
                                 llvm::ConstantFP::getInfinity(plain->getType()));
  Value* any = b.CreateOr(b.CreateOr(x_infinite, y_infinite), term_infinite);
  b.CreateRet(b.CreateSelect(b.CreateAnd(lost, any), infinite, plain));
}

llvm::Function* product_function(llvm::Module& module) {
  constexpr const char* name = "ricci.complex_product";
  if (auto* found = module.getFunction(name)) return found;
  auto* pair = llvm::FixedVectorType::get(llvm::Type::getDoubleTy(module.getContext()), 2);
  auto* function = vm::make_cold_function(module, name, pair, {pair, pair});
  fill_product_function(*function);
  return function;
}

}  // namespace

Value* ComplexLanes::floats(Value* x) {
  const bool wide = x->getType()->getScalarSizeInBits() == 128;
  llvm::Type* element = wide ? b_.getDoubleTy() : b_.getFloatTy();
  return b_.CreateBitCast(x, in_lanes(element, 2 * lane_count(x->getType())));
}

Value* ComplexLanes::numbers(Value* floats) {
  llvm::Type* type = floats->getType();
  return b_.CreateBitCast(
      floats, in_lanes(b_.getIntNTy(2 * type->getScalarSizeInBits()), lane_count(type) / 2));
}

Value* ComplexLanes::constant(DType dtype, std::complex<double> value) const {
  if (dtype == DType::C64) {
    const std::complex<float> narrow(value);
    const std::uint64_t high = std::bit_cast<std::uint32_t>(narrow.imag());
    return b_.getInt64(high << 32 | std::bit_cast<std::uint32_t>(narrow.real()));
  }
  return b_.getInt(llvm::APInt(128, {std::bit_cast<std::uint64_t>(value.real()),
                                     std::bit_cast<std::uint64_t>(value.imag())}));
}

Value* ComplexLanes::unary(UnaryKind kind, Value* x) {
  switch (kind) {
    case UnaryKind::Neg: return numbers(b_.CreateFNeg(floats(x)));
    case UnaryKind::Conjugate: return conjugate(x);
    case UnaryKind::Square: return product(x, x);
    case UnaryKind::Imag: return imaginary_part(x);
    case UnaryKind::Abs: return modulus(x);
    case UnaryKind::IsNan:
    case UnaryKind::IsFinite: return any_part(kind, x);
    default: break;
  }
  return woven(function(kind, parts(x), is_wide(x)), x->getType());
}

// Flips signs on the parts: the lanes as they are may be wider than what registers compute with.
Value* ComplexLanes::conjugate(Value* x) {
  Value* parts = floats(x);
  return numbers(alternating(b_, parts, b_.CreateFNeg(parts)));
}

Value* ComplexLanes::binary(BinaryKind kind, Value* x, Value* y) {
  switch (kind) {
    // Sums of floats in double, rounded, are sums in float.
    case BinaryKind::Add: return numbers(b_.CreateFAdd(floats(x), floats(y)));
    case BinaryKind::Sub: return numbers(b_.CreateFSub(floats(x), floats(y)));
    case BinaryKind::Mul: return product(x, y);
    case BinaryKind::Div: return woven(quotient(parts(x), parts(y), is_wide(x)), x->getType());
    case BinaryKind::Pow: return woven(power(parts(x), parts(y)), x->getType());
    default: break;  // see the dtypes of its row
  }
  throw InternalError("a function of two complex numbers has no code");
}

Value* ComplexLanes::product(Value* x, Value* y) {
  Value* pairs = floats(x);
  Value* wide = joined(b_, terms_of(b_, as_doubles(b_, pairs), as_doubles(b_, floats(y))));
  Value* plain = rounded_to(b_, wide, pairs->getType());
  const vm::Lanes lanes{b_, target_, plain->getType(), false};
  const vm::Mask lost(lanes, b_.CreateFCmpUNO(plain, plain));
  const auto careful = [&]() -> std::vector<Value*> {
    llvm::Function* function = product_function(*b_.GetInsertBlock()->getModule());
    Value* all = llvm::PoisonValue::get(x->getType());
    vm::for_each_lane(x->getType(), [&](unsigned lane) {
      Value* a = floats(vm::lane_of(b_, x, lane));
      Value* b = floats(vm::lane_of(b_, y, lane));
      Value* one = b_.CreateCall(function, {as_doubles(b_, a), as_doubles(b_, b)});
      all = vm::with_lane(b_, all, numbers(rounded_to(b_, one, a->getType())), lane);
    });
    return {floats(all)};
  };
  return numbers(vm::when_any(lost, {plain}, careful)[0]);
}

Value* ComplexLanes::compare(CompareKind kind, Value* x, Value* y) {
  // Both parts are equal when all bits of their answers, side by side, are set.
  Value* parts = b_.CreateFCmpOEQ(floats(x), floats(y));
  llvm::Type* half = resized(x, false)->getScalarType();
  Value* bits = b_.CreateSExt(parts, in_lanes(half, 2 * lane_count(x->getType())));
  Value* both = numbers(bits);
  Value* all = llvm::Constant::getAllOnesValue(both->getType());
  return kind == CompareKind::Eq ? b_.CreateICmpEQ(both, all) : b_.CreateICmpNE(both, all);
}

Value* ComplexLanes::cast(Value* x, DType to) {
  Value* parts = floats(x);
  llvm::Type* narrow = in_lanes(b_.getFloatTy(), lane_count(parts->getType()));
  return numbers(to == DType::C64 ? rounded_to(b_, parts, narrow) : as_doubles(b_, parts));
}

Value* ComplexLanes::real_part(Value* x) {
  llvm::Type* half = resized(x, false);
  llvm::Type* element = half->getScalarSizeInBits() == 64 ? b_.getDoubleTy() : b_.getFloatTy();
  return b_.CreateBitCast(b_.CreateTrunc(x, half), in_lanes(element, lane_count(half)));
}

Value* ComplexLanes::imaginary_part(Value* x) {
  const unsigned half = x->getType()->getScalarSizeInBits() / 2;
  return real_part(b_.CreateLShr(x, half));
}

Value* ComplexLanes::from_parts(Value* real, Value* imaginary) {
  Value* high = from_real(imaginary);
  const unsigned half = high->getType()->getScalarSizeInBits() / 2;
  return b_.CreateOr(from_real(real), b_.CreateShl(high, half));
}

Value* ComplexLanes::from_real(Value* x) {
  llvm::Type* bits =
      in_lanes(b_.getIntNTy(x->getType()->getScalarSizeInBits()), lane_count(x->getType()));
  Value* low = b_.CreateBitCast(x, bits);
  return b_.CreateZExt(low, resized(low, true));
}

}  // namespace ricci::cpu
