// Taking an angle to within π/4 of zero: a few multiplications for angles of any ordinary size, and
// beyond that, behind a branch hardly ever taken, the product with all the digits of 2/π that
// matter.
#include <array>
#include <numbers>

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "backend/cpu/math/vector_math_branch.h"
#include "backend/cpu/math/vector_math_functions.h"

namespace ricci::cpu::vm {
namespace {

constexpr double TwoOverPi = 2 / std::numbers::pi;

/// The binary digits of 2/π, from the point on.
constexpr std::array<std::uint64_t, 20> TwoOverPiDigits{
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

/// π/2 in single precision, each product with n fused: exact in the first step, as x and n·π/2's
/// first part are both multiples of 2^−23 and nearly cancel.
Reduced reduce_fused_single(Real x) {
  const Whole n = nearest(x, TwoOverPi);
  Real r = fma(n.number, -0x1.921fb6p+0, x);
  r = fma(n.number, 0x1.777a5cp-25, r);
  r = fma(n.number, 0x1.ee59dap-50, r);
  return {r, x.c->real(0), n.integer};
}

/// π/2 in parts of 33 digits: their products with n < 2^20 are exact.
constexpr double HalfPi1 = 0x1.921fb544p+0;
constexpr double HalfPi2 = 0x1.0b4611a6p-34;
constexpr double HalfPi3 = 0x1.3198a2e037073p-69;

Reduced reduce_double(Real x) {
  const Whole n = nearest(x, TwoOverPi);
  const Real first = x - n.number * HalfPi1;
  if (x.c->single) {
    return {first - n.number * (HalfPi2 + HalfPi3), x.c->real(0), n.integer};
  }
  const Pair second = two_sum(first, -(n.number * HalfPi2));
  const Pair r = quick_two_sum(second.hi, second.lo - n.number * HalfPi3);
  return {r.hi, r.lo, n.integer};
}

/// Single precision without fused products: reduce in double, then round.
Reduced reduce_single_by_double(Real x) {
  const Lanes& c = *x.c;
  const Lanes wide{c.b, c.target, c.with_scalar(c.b.getDoubleTy()), true};
  const Reduced r = reduce_double({wide, c.b.CreateFPExt(x.v, wide.type)});
  return {
      {c, c.b.CreateFPTrunc(r.hi.v, c.type)}, c.real(0), {c, c.b.CreateTrunc(r.n.v, c.int_type())}};
}

// --- any angle, one at a time ------------------------------------------------------------------

llvm::GlobalVariable* digits_table(llvm::Module& module) {
  constexpr const char* name = "ricci.two_over_pi";
  if (auto* found = module.getGlobalVariable(name, true)) return found;
  auto* data = llvm::ConstantDataArray::get(module.getContext(),
                                            llvm::ArrayRef<std::uint64_t>(TwoOverPiDigits));
  return new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::InternalLinkage,
                                  data, name);
}

/// 192 digits of 2/π from digit `start` on, as an integer.
llvm::Value* digits_from(llvm::IRBuilder<>& b, llvm::Value* start) {
  auto* wide = b.getIntNTy(256);
  llvm::Value* word = b.CreateLShr(start, 6);
  llvm::Value* all = llvm::ConstantInt::get(wide, 0);
  auto* table = digits_table(*b.GetInsertBlock()->getModule());
  for (unsigned k = 0; k < 4; ++k) {
    llvm::Value* at = b.CreateAdd(word, b.getInt64(k));
    llvm::Value* digits = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), table, {at}));
    all = b.CreateOr(b.CreateShl(all, 64), b.CreateZExt(digits, wide));
  }
  llvm::Value* within = b.CreateZExt(b.CreateAnd(start, 63), wide);
  return b.CreateLShr(b.CreateShl(all, within), 64);
}

/// The function {hi, lo, n} = reduce(double), |x| ≥ 2; NaN for what is not finite.
/// x = m·2^e with a whole m of 53 digits. Digits of 2/π that m·2^e makes multiples of 4 are left
/// out; 192 from there on leave 62 good ones however closely x meets a multiple of π/2.
llvm::Function* reduce_one_function(llvm::Module& module) {
  constexpr const char* name = "ricci.reduce_angle";
  if (auto* found = module.getFunction(name)) return found;
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto* number = b.getDoubleTy();
  auto* result = llvm::StructType::get(context, {number, number, b.getInt64Ty()});
  auto* function = make_cold_function(module, name, result, {number});
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
  llvm::Value* x = function->getArg(0);
  llvm::Value* bits = b.CreateBitCast(x, b.getInt64Ty());
  llvm::Value* field = b.CreateAnd(b.CreateLShr(bits, 52), 0x7ff);
  llvm::Value* m = b.CreateOr(b.CreateAnd(bits, 0xfffffffffffffULL), 1ULL << 52);
  // e − 2 digits go; where that is negative none do, and the product has its point further right.
  llvm::Value* skip = b.CreateSub(field, b.getInt64(1075 + 2));
  llvm::Value* negative = b.CreateICmpSLT(skip, b.getInt64(0));
  llvm::Value* start = b.CreateSelect(negative, b.getInt64(0), skip);
  // Not finite: stay within the table, the result is replaced below.
  llvm::Value* finite = b.CreateICmpNE(field, b.getInt64(0x7ff));
  start = b.CreateSelect(finite, start, b.getInt64(0));
  llvm::Value* right = b.CreateSelect(negative, b.CreateNeg(skip), b.getInt64(0));
  auto* wide = b.getIntNTy(256);
  llvm::Value* product = b.CreateMul(digits_from(b, start), b.CreateZExt(m, wide));
  product = b.CreateLShr(product, b.CreateZExt(right, wide));
  product = b.CreateTrunc(product, b.getIntNTy(192));  // top two digits: the quadrant
  llvm::Value* top = b.CreateTrunc(b.CreateLShr(product, 128), b.getInt64Ty());
  llvm::Value* rounded = b.CreateAdd(top, b.getInt64(1ULL << 61));
  llvm::Value* quadrant = b.CreateLShr(rounded, 62);
  // The fraction, signed, as 128 digits of a number in [−1/2, 1/2).
  auto* half_wide = b.getIntNTy(128);
  llvm::Value* fraction = b.CreateTrunc(b.CreateLShr(b.CreateShl(product, 2), 64), half_wide);
  llvm::Value* below_zero = b.CreateICmpSLT(fraction, llvm::ConstantInt::get(half_wide, 0));
  llvm::Value* size = b.CreateSelect(below_zero, b.CreateNeg(fraction), fraction);
  llvm::Value* zeros =
      b.CreateIntrinsic(llvm::Intrinsic::ctlz, {half_wide}, {size, b.getInt1(false)});
  llvm::Value* normal = b.CreateShl(size, zeros);
  // Two doubles of 53 digits each: 2^−53·(first + 2^−53·second)·2^−zeros.
  llvm::Value* first =
      b.CreateSIToFP(b.CreateTrunc(b.CreateLShr(normal, 75), b.getInt64Ty()), number);
  llvm::Value* second = b.CreateSIToFP(
      b.CreateAnd(b.CreateTrunc(b.CreateLShr(normal, 22), b.getInt64Ty()), (1ULL << 53) - 1),
      number);
  llvm::Value* exponent = b.CreateSub(b.getInt64(1023 - 53), b.CreateTrunc(zeros, b.getInt64Ty()));
  llvm::Value* unit = b.CreateBitCast(b.CreateShl(exponent, 52), number);
  const TargetInfo& plain = target_named("portable");
  const Lanes lanes{b, plain, number, false};
  const Real high = Real{lanes, first} * Real{lanes, unit};
  const Real low = Real{lanes, second} * Real{lanes, unit} * 0x1p-53;
  const Pair scaled = two_product(high, lanes.real(0x1.921fb54442d18p+0));
  const Real rest = high * 0x1.1a62633145c07p-54 + low * 0x1.921fb54442d18p+0 + scaled.lo;
  const Pair r = quick_two_sum(scaled.hi, rest);
  // Both the sign of the fraction and that of x.
  llvm::Value* x_negative = b.CreateICmpSLT(bits, b.getInt64(0));
  const Mask flip{lanes, b.CreateXor(below_zero, x_negative)};
  llvm::Value* n = b.CreateSelect(x_negative, b.CreateNeg(quadrant), quadrant);
  const Mask usable{lanes, finite};
  llvm::Value* out = llvm::PoisonValue::get(result);
  out = b.CreateInsertValue(out, select(usable, select(flip, -r.hi, r.hi), NotANumber).v, 0);
  out = b.CreateInsertValue(out, select(flip, -r.lo, r.lo).v, 1);
  out = b.CreateInsertValue(out, n, 2);
  b.CreateRet(out);
  return function;
}

/// The same for all lanes of x's type.
llvm::Function* reduce_lanes_function(const Lanes& c) {
  llvm::Module& module = *c.b.GetInsertBlock()->getModule();
  const std::string name = "ricci.reduce_angles." + type_suffix(c.type);
  if (auto* found = module.getFunction(name)) return found;
  llvm::LLVMContext& context = module.getContext();
  llvm::Function* one = reduce_one_function(module);
  auto* result = llvm::StructType::get(context, {c.type, c.type, c.int_type()});
  auto* function = make_cold_function(module, name, result, {c.type});
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", function));
  llvm::Type* scalar = c.type->getScalarType();
  std::array<llvm::Value*, 3> parts{llvm::PoisonValue::get(c.type), llvm::PoisonValue::get(c.type),
                                    llvm::PoisonValue::get(c.int_type())};
  for_each_lane(c.type, [&](unsigned lane) {
    llvm::Value* x = lane_of(b, function->getArg(0), lane);
    if (scalar->isFloatTy()) x = b.CreateFPExt(x, b.getDoubleTy());
    llvm::Value* r = b.CreateCall(one, {x});
    for (unsigned k = 0; k < 3; ++k) {
      llvm::Value* part = b.CreateExtractValue(r, k);
      if (scalar->isFloatTy()) {
        part = k < 2 ? b.CreateFPTrunc(part, scalar) : b.CreateTrunc(part, b.getInt32Ty());
      }
      parts[k] = with_lane(b, parts[k], part, lane);
    }
  });
  llvm::Value* out = llvm::PoisonValue::get(result);
  for (unsigned k = 0; k < 3; ++k) out = b.CreateInsertValue(out, parts[k], k);
  b.CreateRet(out);
  return function;
}

Reduced reduce_ordinary(Real x) {
  if (!x.c->is_f32()) return reduce_double(x);
  return x.c->target.fma ? reduce_fused_single(x) : reduce_single_by_double(x);
}

}  // namespace

Reduced reduce_quadrant(Real x) {
  const Lanes& c = *x.c;
  const Reduced r = reduce_ordinary(x);
  const Mask large = abs(x) > c.pick(0x1p16, 0x1p20);
  const auto merged = when_any(large, {r.hi.v, r.lo.v, r.n.v}, [&] {
    llvm::Value* all = c.b.CreateCall(reduce_lanes_function(c), {x.v});
    // Only the lanes that are large: below 2 the digits' place would be wrong.
    std::vector<llvm::Value*> parts{r.hi.v, r.lo.v, r.n.v};
    for (unsigned k = 0; k < parts.size(); ++k) {
      parts[k] = c.b.CreateSelect(large.v, c.b.CreateExtractValue(all, k), parts[k]);
    }
    return parts;
  });
  return {{c, merged[0]}, {c, merged[1]}, {c, merged[2]}};
}

}  // namespace ricci::cpu::vm
