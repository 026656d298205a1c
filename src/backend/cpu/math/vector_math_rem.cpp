// The remainder of a division, exact: x − y·trunc(x/y).
#include <array>

#include "backend/cpu/math/vector_math_branch.h"
#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

/// Remainder of one pair of doubles by long division on integers, ten digits of the quotient at a
/// time; both are finite, positive, x ≥ y > 0.
llvm::Function* long_division_function(llvm::Module& module) {
  constexpr const char* name = "ricci.rem_long";
  if (auto* found = module.getFunction(name)) return found;
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* number = b.getDoubleTy();
  auto* function = make_cold_function(module, name, number, {number, number});
  auto* entry = llvm::BasicBlock::Create(context, "entry", function);
  auto* head = llvm::BasicBlock::Create(context, "head", function);
  auto* step = llvm::BasicBlock::Create(context, "step", function);
  auto* done = llvm::BasicBlock::Create(context, "done", function);
  const auto integer = [&](std::uint64_t v) { return b.getInt64(v); };
  b.SetInsertPoint(entry);
  // Magnitude = m·2^(e − 1075), a field of 0 counting as 1 without the leading digit.
  const auto split = [&](llvm::Value* x) {
    llvm::Value* bits = b.CreateBitCast(x, b.getInt64Ty());
    llvm::Value* field = b.CreateAnd(b.CreateLShr(bits, 52), 0x7ff);
    llvm::Value* low = b.CreateAnd(bits, (1ULL << 52) - 1);
    llvm::Value* tiny = b.CreateICmpEQ(field, integer(0));
    llvm::Value* m = b.CreateSelect(tiny, low, b.CreateOr(low, integer(1ULL << 52)));
    return std::pair(m, b.CreateSelect(tiny, integer(1), field));
  };
  const auto [mx, ex] = split(function->getArg(0));
  const auto [my, ey] = split(function->getArg(1));
  llvm::Value* first = b.CreateURem(mx, my);
  llvm::Value* digits = b.CreateSub(ex, ey);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  auto* rest = b.CreatePHI(b.getInt64Ty(), 2);
  auto* left = b.CreatePHI(b.getInt64Ty(), 2);
  rest->addIncoming(first, entry);
  left->addIncoming(digits, entry);
  b.CreateCondBr(b.CreateICmpSGT(left, integer(0)), step, done);
  b.SetInsertPoint(step);
  llvm::Value* few = b.CreateICmpSLT(left, integer(10));
  llvm::Value* count = b.CreateSelect(few, left, integer(10));
  rest->addIncoming(b.CreateURem(b.CreateShl(rest, count), my), step);
  left->addIncoming(b.CreateSub(left, count), step);
  b.CreateBr(head);
  b.SetInsertPoint(done);
  // rest·2^(ey − 1075): the first factor is a normal number or the unit of the tiny ones.
  llvm::Value* half = b.CreateLShr(ey, 1);
  const auto power = [&](llvm::Value* field) {
    return b.CreateBitCast(b.CreateShl(field, 52), number);
  };
  llvm::Value* r = b.CreateSIToFP(rest, number);
  // 2^(ey − 1075) = 2^(half − 537)·2^((ey − half) − 538)
  r = b.CreateFMul(r, power(b.CreateAdd(half, integer(1023 - 537))));
  r = b.CreateFMul(r, power(b.CreateAdd(b.CreateSub(ey, half), integer(1023 - 538))));
  b.CreateRet(r);
  return function;
}

/// The same for the lanes where `chosen` holds.
llvm::Value* long_division(const Lanes& c, llvm::Value* chosen, llvm::Value* x, llvm::Value* y,
                           llvm::Value* otherwise) {
  llvm::IRBuilderBase& b = c.b;
  llvm::Function* one = long_division_function(*b.GetInsertBlock()->getModule());
  llvm::Value* all = otherwise;
  llvm::Type* scalar = c.type->getScalarType();
  for_each_lane(c.type, [&](unsigned lane) {
    const auto as_double = [&](llvm::Value* v) {
      llvm::Value* element = lane_of(b, v, lane);
      return scalar->isFloatTy() ? b.CreateFPExt(element, b.getDoubleTy()) : element;
    };
    // Lanes not chosen divide 1 by 1: the function's operands are always in its domain.
    llvm::Value* mine = lane_of(b, chosen, lane);
    llvm::Value* unit = llvm::ConstantFP::get(b.getDoubleTy(), 1);
    llvm::Value* r = b.CreateCall(
        one, {b.CreateSelect(mine, as_double(x), unit), b.CreateSelect(mine, as_double(y), unit)});
    if (scalar->isFloatTy()) r = b.CreateFPTrunc(r, scalar);
    all = with_lane(b, all, b.CreateSelect(mine, r, lane_of(b, otherwise, lane)), lane);
  });
  return all;
}

/// x − n·y for n = trunc(x/y) or one more: either is a number, so this is exact.
Real rest_of(Real x, Real n, Real y) {
  const Pair product = two_product(n, y);
  return (x - product.hi) - product.lo;
}

/// The remainder of magnitudes where the quotient has few digits.
struct Division {
  Real rest;
  Mask plain;  ///< where that is right
};
Division divide(Real a, Real b) {
  const Lanes& c = *a.c;
  const Real q = a / b;
  const Real n = trunc(q);
  const Real r = rest_of(a, n, b);
  // Rounding may have lifted the quotient to the next integer.
  const Real mended = select(r < 0.0, r + b, r);
  const double most = c.single ? 0x1p28 : 0x1p52;
  Mask plain = q < most;
  // The product's lower half must not vanish, nor its splitting overflow.
  if (!c.single) plain = plain & (b > 0x1p-900) & (a < 0x1p990);
  return {select(a < b, a, mended), plain | (a < b)};
}

}  // namespace

Real rem(Real x, Real y) {
  const Lanes& c = *x.c;
  const Real a = abs(x);
  const Real b = abs(y);
  const auto fast = [&]() -> std::pair<Real, Mask> {
    if (!c.is_f32()) {
      const Division d = divide(a, b);
      return {d.rest, d.plain};
    }
    const Lanes wide{c.b, c.target, c.with_scalar(c.b.getDoubleTy()), true};
    const Division d =
        divide({wide, c.b.CreateFPExt(a.v, wide.type)}, {wide, c.b.CreateFPExt(b.v, wide.type)});
    return {{c, c.b.CreateFPTrunc(d.rest.v, c.type)}, {c, d.plain.v}};
  }();
  const Mask defined = (a < Infinity) & (b > 0.0);  // and neither is NaN, for the next line
  const Mask usable = defined & !b.is_nan();
  const Mask slow = usable & !fast.second;
  const auto r = when_any(slow, {fast.first.v}, [&] {
    return std::vector{long_division(c, slow.v, a.v, b.v, fast.first.v)};
  });
  return select(usable, copysign({c, r[0]}, x), NotANumber);
}

}  // namespace ricci::cpu::vm
