#include "backend/cpu/codegen/lanes.h"

#include <cmath>

#include <llvm/IR/Intrinsics.h>

#include "ricci/support/error.h"

#include "backend/cpu/math/vector_math.h"
#include "loop/of_nothing.h"
#include "type/small_dtype.h"

namespace ricci::cpu {
namespace {

using llvm::Value;

bool is_unsigned(DType d) { return d == DType::U8 || d == DType::U32 || d == DType::Bool; }
llvm::Type* in_lanes(llvm::Type* element, int lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

llvm::Align align_of(DType d) {
  return llvm::Align(static_cast<std::uint64_t>(std::min<std::int64_t>(size_of(d), 8)));
}

}  // namespace

int lanes_of(Value* value) {
  const auto* v = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return v == nullptr ? 1 : static_cast<int>(v->getNumElements());
}

llvm::Type* Lanes::like(Value* shape, llvm::Type* element) const {
  return in_lanes(element, lanes_of(shape));
}

llvm::Type* Lanes::stored(DType dtype, int lanes) const {
  switch (dtype) {
    case DType::F64: return in_lanes(b_.getDoubleTy(), lanes);
    case DType::F32: return in_lanes(b_.getFloatTy(), lanes);
    case DType::C128: return in_lanes(b_.getInt128Ty(), lanes);
    default: return in_lanes(b_.getIntNTy(static_cast<unsigned>(size_of(dtype) * 8)), lanes);
  }
}

llvm::Type* Lanes::held(DType dtype, int lanes) const {
  if (is_small_float(dtype)) return in_lanes(b_.getFloatTy(), lanes);
  if (dtype == DType::Bool) return in_lanes(b_.getInt1Ty(), lanes);
  return stored(dtype, lanes);
}

Value* Lanes::constant(DType dtype, double value, int lanes) const {
  if (is_float(dtype)) return llvm::ConstantFP::get(held(dtype, lanes), value);
  if (is_complex(dtype)) return constant(dtype, std::complex<double>(value), lanes);
  return constant(dtype, static_cast<std::int64_t>(value), lanes);
}

Value* Lanes::constant(DType dtype, std::int64_t value, int lanes) const {
  if (is_float(dtype) || is_complex(dtype)) {
    return constant(dtype, static_cast<double>(value), lanes);
  }
  return llvm::ConstantInt::get(held(dtype, lanes), static_cast<std::uint64_t>(value), true);
}

Value* Lanes::constant(DType dtype, std::complex<double> value, int lanes) const {
  if (!is_complex(dtype)) return constant(dtype, value.real(), lanes);
  return spread(complex_.constant(dtype, value), lanes);
}

Value* Lanes::spread(Value* value, int lanes) const {
  if (lanes == 1 || value->getType()->isVectorTy()) return value;
  return b_.CreateVectorSplat(static_cast<unsigned>(lanes), value);
}

Value* Lanes::half_to_float(Value* bits) {
  if (target_.f16c) {
    // The fence keeps LLVM from comparing halves, which the machine can do only one by one.
    llvm::Type* wide = like(bits, b_.getFloatTy());
    Value* halves = b_.CreateBitCast(bits, like(bits, b_.getHalfTy()));
    return b_.CreateArithmeticFence(b_.CreateFPExt(halves, wide), wide);
  }
  // The exponent is moved by multiplying with 2^112, which also makes subnormals right; infinities
  // and NaNs get the largest exponent.
  llvm::Type* i32 = like(bits, b_.getInt32Ty());
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(i32, v); };
  Value* wide = b_.CreateZExt(bits, i32);
  Value* magnitude = b_.CreateShl(b_.CreateAnd(wide, c(0x7fff)), c(13));
  Value* sign = b_.CreateShl(b_.CreateAnd(wide, c(0x8000)), c(16));
  llvm::Type* f32 = like(bits, b_.getFloatTy());
  Value* scaled =
      b_.CreateFMul(b_.CreateBitCast(magnitude, f32), llvm::ConstantFP::get(f32, 0x1p112));
  Value* special = b_.CreateOr(magnitude, c(0x7f800000));
  Value* is_special = b_.CreateICmpUGE(magnitude, c(0x0f800000));
  Value* out = b_.CreateSelect(is_special, special, b_.CreateBitCast(scaled, i32));
  return b_.CreateBitCast(b_.CreateOr(out, sign), f32);
}

Value* Lanes::float_to_half(Value* x) {
  if (target_.f16c) {
    return b_.CreateBitCast(b_.CreateFPTrunc(x, like(x, b_.getHalfTy())), like(x, b_.getInt16Ty()));
  }
  llvm::Type* i32 = like(x, b_.getInt32Ty());
  llvm::Type* f32 = like(x, b_.getFloatTy());
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(i32, v); };
  Value* bits = b_.CreateBitCast(x, i32);
  Value* sign = b_.CreateLShr(b_.CreateAnd(bits, c(0x80000000)), c(16));
  Value* magnitude = b_.CreateAnd(bits, c(0x7fffffff));
  // Subnormal halves: adding 0.5 rounds at the right bit. Normal ones: to nearest even by hand.
  Value* shifted = b_.CreateFAdd(b_.CreateBitCast(magnitude, f32), llvm::ConstantFP::get(f32, 0.5));
  Value* small = b_.CreateSub(b_.CreateBitCast(shifted, i32), c(0x3f000000));
  Value* odd = b_.CreateAnd(b_.CreateLShr(magnitude, c(13)), c(1));
  Value* rounded = b_.CreateAdd(b_.CreateAdd(magnitude, c(0xc8000fff)), odd);
  Value* normal = b_.CreateLShr(rounded, c(13));
  Value* out = b_.CreateSelect(b_.CreateICmpULT(magnitude, c(0x38800000)), small, normal);
  out = b_.CreateSelect(b_.CreateICmpUGE(magnitude, c(0x477ff000)), c(0x7c00), out);
  out = b_.CreateSelect(b_.CreateICmpUGT(magnitude, c(0x7f800000)), c(0x7e00), out);
  return b_.CreateTrunc(b_.CreateOr(out, sign), like(x, b_.getInt16Ty()));
}

Value* Lanes::float_to_bfloat(Value* x) {
  llvm::Type* i32 = like(x, b_.getInt32Ty());
  const auto c = [&](std::uint32_t v) { return llvm::ConstantInt::get(i32, v); };
  Value* bits = b_.CreateBitCast(x, i32);
  Value* odd = b_.CreateAnd(b_.CreateLShr(bits, c(16)), c(1));
  Value* rounded = b_.CreateAdd(b_.CreateAdd(bits, c(0x7fff)), odd);
  Value* quiet = b_.CreateOr(bits, c(0x400000));
  Value* out = b_.CreateSelect(b_.CreateFCmpUNO(x, x), quiet, rounded);
  return b_.CreateTrunc(b_.CreateLShr(out, c(16)), like(x, b_.getInt16Ty()));
}

// To float so that rounding once more, to fewer digits, is as rounding once: a float that is not
// exact gets an odd last digit.
Value* Lanes::double_to_float_odd(Value* x) {
  llvm::Type* i32 = like(x, b_.getInt32Ty());
  llvm::Type* f32 = like(x, b_.getFloatTy());
  Value* near = b_.CreateFPTrunc(x, f32);
  Value* back = b_.CreateFPExt(near, x->getType());
  Value* bits = b_.CreateBitCast(near, i32);
  Value* larger = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                   b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  Value* towards_zero = b_.CreateSub(bits, b_.CreateZExt(larger, i32));
  Value* odd = b_.CreateOr(towards_zero, llvm::ConstantInt::get(i32, 1));
  Value* inexact = b_.CreateFCmpONE(back, x);
  return b_.CreateBitCast(b_.CreateSelect(inexact, odd, bits), f32);
}

Value* Lanes::from_stored(Value* x, DType dtype) {
  switch (dtype) {
    case DType::F16: return half_to_float(x);
    case DType::BF16: {
      llvm::Type* i32 = like(x, b_.getInt32Ty());
      Value* wide = b_.CreateShl(b_.CreateZExt(x, i32), llvm::ConstantInt::get(i32, 16));
      return b_.CreateBitCast(wide, like(x, b_.getFloatTy()));
    }
    case DType::Bool: return b_.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
    default: return x;
  }
}

Value* Lanes::to_stored(Value* x, DType dtype) {
  switch (dtype) {
    case DType::F16: return float_to_half(x);
    case DType::BF16: return float_to_bfloat(x);
    case DType::Bool: return b_.CreateZExt(x, like(x, b_.getInt8Ty()));
    default: return x;
  }
}

Value* Lanes::rounded(Value* x, DType dtype) {
  return is_small_float(dtype) ? from_stored(to_stored(x, dtype), dtype) : x;
}

Value* Lanes::load_stored(DType dtype, Value* at, int lanes, Value* mask) {
  llvm::Type* type = stored(dtype, lanes);
  if (mask == nullptr || lanes == 1) return b_.CreateAlignedLoad(type, at, align_of(dtype));
  return b_.CreateMaskedLoad(type, at, align_of(dtype), mask, llvm::Constant::getNullValue(type));
}

void Lanes::store_stored(DType dtype, Value* stored, Value* at, int lanes, Value* mask) {
  if (mask == nullptr || lanes == 1) {
    b_.CreateAlignedStore(stored, at, align_of(dtype));
  } else {
    b_.CreateMaskedStore(stored, at, align_of(dtype), mask);
  }
}

Value* Lanes::load(DType dtype, Value* at, int lanes, Value* mask) {
  return from_stored(load_stored(dtype, at, lanes, mask), dtype);
}

void Lanes::store(DType dtype, Value* value, Value* at, int lanes, Value* mask) {
  store_stored(dtype, to_stored(spread(value, lanes), dtype), at, lanes, mask);
}

Value* Lanes::gather(DType dtype, Value* addresses, int lanes, Value* mask) {
  if (lanes == 1) return load(dtype, addresses, 1, nullptr);
  llvm::Type* type = stored(dtype, lanes);
  return from_stored(b_.CreateMaskedGather(type, addresses, align_of(dtype), mask,
                                           llvm::Constant::getNullValue(type)),
                     dtype);
}

void Lanes::scatter(DType dtype, Value* value, Value* addresses, int lanes, Value* mask) {
  if (lanes == 1) return store(dtype, value, addresses, 1, nullptr);
  b_.CreateMaskedScatter(to_stored(spread(value, lanes), dtype), addresses, align_of(dtype), mask);
}

Value* Lanes::unary(const loop::Instr& instr, DType dtype, Value* x) {
  const UnaryKind kind = instr.unary();
  if (is_complex(dtype)) return complex_.unary(kind, x);
  if (!is_float(dtype)) return int_unary(kind, dtype, x);
  if (kind == UnaryKind::Exp && instr.not_positive) {
    return rounded(emit_exp_not_positive(b_, x, target_), dtype);
  }
  return rounded(emit_unary(b_, kind, x, target_), row(kind).result_dtype(dtype));
}

Value* Lanes::int_unary(UnaryKind kind, DType dtype, Value* x) {
  Value* zero = llvm::Constant::getNullValue(x->getType());
  switch (kind) {
    case UnaryKind::Neg: return b_.CreateNeg(x);
    case UnaryKind::Square: return b_.CreateMul(x, x);
    case UnaryKind::LogicalNot:
    case UnaryKind::BitwiseNot: return b_.CreateNot(x);
    case UnaryKind::Abs:
      return is_unsigned(dtype) ? x
                                : b_.CreateSelect(b_.CreateICmpSLT(x, zero), b_.CreateNeg(x), x);
    case UnaryKind::Relu:
      return is_unsigned(dtype) ? x : b_.CreateSelect(b_.CreateICmpSLT(x, zero), zero, x);
    case UnaryKind::Sign: {
      Value* one = llvm::ConstantInt::get(x->getType(), 1);
      Value* positive = b_.CreateSelect(b_.CreateICmpNE(x, zero), one, zero);
      if (is_unsigned(dtype)) return positive;
      return b_.CreateSelect(b_.CreateICmpSLT(x, zero), b_.CreateNeg(one), positive);
    }
    case UnaryKind::Round:
    case UnaryKind::Floor:
    case UnaryKind::Ceil:
    case UnaryKind::Trunc: return x;
    default: break;  // see the dtypes of its row
  }
  throw InternalError("a function of integers has no code");
}

Value* Lanes::binary(BinaryKind kind, DType dtype, Value* a, Value* b) {
  if (is_complex(dtype)) return complex_.binary(kind, a, b);
  if (kind == BinaryKind::MakeComplex) return complex_.from_parts(a, b);
  if (!is_float(dtype)) return int_binary(kind, dtype, a, b);
  switch (kind) {
    case BinaryKind::Add: return rounded(b_.CreateFAdd(a, b), dtype);
    case BinaryKind::Sub: return rounded(b_.CreateFSub(a, b), dtype);
    case BinaryKind::Mul: return rounded(b_.CreateFMul(a, b), dtype);
    case BinaryKind::Div: return rounded(b_.CreateFDiv(a, b), dtype);
    default: return rounded(emit_binary(b_, kind, a, b, target_), dtype);
  }
}

Value* Lanes::int_binary(BinaryKind kind, DType dtype, Value* a, Value* b) {
  const bool no_sign = is_unsigned(dtype);
  llvm::Type* type = a->getType();
  const auto width = llvm::ConstantInt::get(type, static_cast<std::uint64_t>(size_of(dtype) * 8));
  switch (kind) {
    case BinaryKind::Add: return dtype == DType::Bool ? b_.CreateOr(a, b) : b_.CreateAdd(a, b);
    case BinaryKind::Sub: return b_.CreateSub(a, b);
    case BinaryKind::Mul: return b_.CreateMul(a, b);
    case BinaryKind::Max:
      return b_.CreateSelect(no_sign ? b_.CreateICmpUGT(a, b) : b_.CreateICmpSGT(a, b), a, b);
    case BinaryKind::Min:
      return b_.CreateSelect(no_sign ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b), a, b);
    case BinaryKind::LogicalAnd:
    case BinaryKind::BitwiseAnd: return b_.CreateAnd(a, b);
    case BinaryKind::LogicalOr:
    case BinaryKind::BitwiseOr: return b_.CreateOr(a, b);
    case BinaryKind::LogicalXor:
    case BinaryKind::BitwiseXor: return b_.CreateXor(a, b);
    case BinaryKind::ShiftLeft: {
      Value* inside = b_.CreateICmpULT(b, width);
      Value* by = b_.CreateSelect(inside, b, llvm::Constant::getNullValue(type));
      return b_.CreateSelect(inside, b_.CreateShl(a, by), llvm::Constant::getNullValue(type));
    }
    case BinaryKind::ShiftRight: {
      Value* inside = b_.CreateICmpULT(b, width);
      Value* most = b_.CreateSub(width, llvm::ConstantInt::get(type, 1));
      Value* by = b_.CreateSelect(inside, b, most);
      if (!no_sign) return b_.CreateAShr(a, by);
      return b_.CreateSelect(inside, b_.CreateLShr(a, by), llvm::Constant::getNullValue(type));
    }
    default: break;  // faults are the kernel's, other functions have no integers
  }
  throw InternalError("a function of two integers has no code");
}

Value* Lanes::compare(CompareKind kind, DType dtype, Value* a, Value* b) {
  if (is_complex(dtype)) return complex_.compare(kind, a, b);
  if (is_float(dtype)) {
    switch (kind) {
      case CompareKind::Eq: return b_.CreateFCmpOEQ(a, b);
      case CompareKind::Ne: return b_.CreateFCmpUNE(a, b);
      case CompareKind::Lt: return b_.CreateFCmpOLT(a, b);
      case CompareKind::Le: return b_.CreateFCmpOLE(a, b);
      case CompareKind::Gt: return b_.CreateFCmpOGT(a, b);
      case CompareKind::Ge: return b_.CreateFCmpOGE(a, b);
    }
  }
  const bool u = is_unsigned(dtype);
  switch (kind) {
    case CompareKind::Eq: return b_.CreateICmpEQ(a, b);
    case CompareKind::Ne: return b_.CreateICmpNE(a, b);
    case CompareKind::Lt: return u ? b_.CreateICmpULT(a, b) : b_.CreateICmpSLT(a, b);
    case CompareKind::Le: return u ? b_.CreateICmpULE(a, b) : b_.CreateICmpSLE(a, b);
    case CompareKind::Gt: return u ? b_.CreateICmpUGT(a, b) : b_.CreateICmpSGT(a, b);
    case CompareKind::Ge: return u ? b_.CreateICmpUGE(a, b) : b_.CreateICmpSGE(a, b);
  }
  return nullptr;
}

Value* Lanes::nonzero(Value* x, DType dtype) {
  if (dtype == DType::Bool) return x;
  return compare(CompareKind::Ne, dtype, x, llvm::Constant::getNullValue(x->getType()));
}

Value* Lanes::cast(Value* x, DType from, DType to) {
  if (from == to) return x;
  if (to == DType::Bool) return nonzero(x, from);
  if (is_complex(from) || is_complex(to)) return complex_cast(x, from, to);
  llvm::Type* type = held(to, lanes_of(x));
  if (is_float(from) && is_float(to)) {
    if (from == DType::F64 && is_small_float(to)) return rounded(double_to_float_odd(x), to);
    if (from == DType::F64) return b_.CreateFPTrunc(x, type);
    if (to == DType::F64) return b_.CreateFPExt(x, type);
    return rounded(x, to);
  }
  if (is_float(from)) return float_to_int(x, to);
  if (is_float(to)) {
    // Through double where that is exact, so that smaller floats are rounded once.
    if (is_small_float(to)) {
      llvm::Type* f64 = held(DType::F64, lanes_of(x));
      Value* wide = is_unsigned(from) ? b_.CreateUIToFP(x, f64) : b_.CreateSIToFP(x, f64);
      return rounded(double_to_float_odd(wide), to);
    }
    return is_unsigned(from) ? b_.CreateUIToFP(x, type) : b_.CreateSIToFP(x, type);
  }
  return is_unsigned(from) ? b_.CreateZExtOrTrunc(x, type) : b_.CreateSExtOrTrunc(x, type);
}

// Towards 0; what is beyond the integers is the last of them, NaN is 0. Written out, because
// LLVM's own conversion that saturates takes one lane at a time.
Value* Lanes::float_to_int(Value* x, DType to) {
  llvm::Type* type = held(to, lanes_of(x));
  const bool no_sign = is_unsigned(to);
  const auto bits = static_cast<int>(size_of(to)) * 8;
  // Those of 8 and 16 bits by way of 32, which vectors are converted to.
  llvm::Type* wide = bits < 32 ? held(DType::I32, lanes_of(x)) : type;
  const double least = no_sign ? 0.0 : -std::ldexp(1.0, bits - 1);
  const double beyond = std::ldexp(1.0, no_sign ? bits : bits - 1);
  // The last float before it, or the last integer where that is a float.
  const bool is_double = x->getType()->getScalarType()->isDoubleTy();
  const int digits = is_double ? 53 : 24;
  const int used = no_sign ? bits : bits - 1;
  const double most = used <= digits ? beyond - 1 : beyond - std::ldexp(1.0, used - digits);
  const auto number = [&](double v) { return llvm::ConstantFP::get(x->getType(), v); };
  Value* zero = llvm::Constant::getNullValue(x->getType());
  Value* some = b_.CreateSelect(b_.CreateFCmpUNO(x, x), zero, x);
  some = b_.CreateSelect(b_.CreateFCmpOLT(some, number(least)), number(least), some);
  some = b_.CreateSelect(b_.CreateFCmpOGT(some, number(most)), number(most), some);
  Value* whole = no_sign && bits == 32 ? b_.CreateFPToUI(some, wide) : b_.CreateFPToSI(some, wide);
  if (wide != type) return b_.CreateTrunc(whole, type);
  if (used <= digits) return whole;
  const auto all = static_cast<unsigned>(bits);
  const llvm::APInt last =
      no_sign ? llvm::APInt::getMaxValue(all) : llvm::APInt::getSignedMaxValue(all);
  return b_.CreateSelect(b_.CreateFCmpOGT(x, number(most)), llvm::ConstantInt::get(type, last),
                         whole);
}

// To real numbers by the real part, from them with an imaginary part of 0.
Value* Lanes::complex_cast(Value* x, DType from, DType to) {
  if (!is_complex(to)) return cast(complex_.real_part(x), real_part_of(from), to);
  if (is_complex(from)) return complex_.cast(x, to);
  return complex_.from_real(cast(x, from, real_part_of(to)));
}

Value* Lanes::identity(ReduceKind kind, DType dtype, int lanes) {
  return std::visit([&](auto number) { return constant(dtype, number, lanes); },
                    loop::reduction_of_nothing(kind, dtype));
}

Value* Lanes::combine(ReduceKind kind, DType dtype, Value* a, Value* b) {
  // Held wider than stored: rounded once, at the end.
  const DType wide = widened(dtype);
  switch (kind) {
    case ReduceKind::Sum: return binary(BinaryKind::Add, wide, a, b);
    case ReduceKind::Prod: return binary(BinaryKind::Mul, wide, a, b);
    case ReduceKind::Max: return binary(BinaryKind::Max, wide, a, b);
    case ReduceKind::Min: return binary(BinaryKind::Min, wide, a, b);
    case ReduceKind::Any: return b_.CreateOr(a, b);
    case ReduceKind::All: return b_.CreateAnd(a, b);
    case ReduceKind::Mean:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("a reduction was not rewritten");
}

llvm::Type* Lanes::waiting(DType dtype, int lanes) const {
  return is_complex(dtype) ? held(real_part_of(dtype), 2 * lanes) : held(dtype, lanes);
}

void Lanes::keep(DType dtype, Value* value, Value* place) {
  b_.CreateStore(is_complex(dtype) ? complex_.floats(value) : value, place);
}

Value* Lanes::kept(DType dtype, Value* place, int lanes) {
  Value* value = b_.CreateLoad(waiting(dtype, lanes), place);
  return is_complex(dtype) ? complex_.numbers(value) : value;
}

Value* Lanes::across(ReduceKind kind, DType dtype, Value* x) {
  for (int n = lanes_of(x); n > 1; n = lanes_of(x)) {
    std::vector<int> low;
    std::vector<int> high;
    for (int i = 0; i < n / 2; ++i) {
      low.push_back(i);
      high.push_back(i + n / 2);
    }
    Value* a = b_.CreateShuffleVector(x, low);
    Value* b = b_.CreateShuffleVector(x, high);
    if (n == 2) {
      a = b_.CreateExtractElement(x, std::uint64_t{0});
      b = b_.CreateExtractElement(x, std::uint64_t{1});
    }
    x = combine(kind, dtype, a, b);
  }
  return x;
}

}  // namespace ricci::cpu
