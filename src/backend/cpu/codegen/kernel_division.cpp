// Quotients, remainders and powers of integers: what cannot be computed is reported and computed
// with another number.
#include <llvm/IR/Constants.h>

#include "backend/cpu/codegen/kernel_emitter.h"

namespace ricci::cpu {
namespace {

using llvm::BasicBlock;
using llvm::Value;

bool has_sign(DType d) { return d != DType::U8 && d != DType::U32; }

// a/b towards zero, for b that is not 0 and, where there are signs, not -1. Vectors divide as
// floats, which have digits enough: a quotient that is no integer is at least 1/b from the next.
Value* quotient(llvm::IRBuilder<>& b, DType dtype, Value* x, Value* y) {
  const bool sign = has_sign(dtype);
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (vector == nullptr || llvm::isa<llvm::Constant>(y) || dtype == DType::I64) {
    return sign ? b.CreateSDiv(x, y) : b.CreateUDiv(x, y);
  }
  llvm::Type* element = size_of(dtype) < 4 ? b.getFloatTy() : b.getDoubleTy();
  auto* floats = llvm::FixedVectorType::get(element, vector->getNumElements());
  const auto as_floats = [&](Value* v) {
    return sign ? b.CreateSIToFP(v, floats) : b.CreateUIToFP(v, floats);
  };
  Value* q = b.CreateFDiv(as_floats(x), as_floats(y));
  return sign ? b.CreateFPToSI(q, x->getType()) : b.CreateFPToUI(q, x->getType());
}

}  // namespace

Value* KernelEmitter::checked_binary(const Instr& i, Value* column) {
  Value* a = operand(i, 0, column);
  Value* b = operand(i, 1, column);
  Value* zero = llvm::Constant::getNullValue(b->getType());
  Value* one = llvm::ConstantInt::get(b->getType(), 1);
  const bool power = i.binary() == BinaryKind::Pow;
  if (power && !has_sign(i.dtype)) return int_power(a, b);
  Value* bad = power ? b_.CreateICmpSLT(b, zero) : b_.CreateICmpEQ(b, zero);
  if (auto* known = llvm::dyn_cast<llvm::Constant>(bad);
      known == nullptr || !known->isNullValue()) {
    Value* counts = lanes_of(bad) > 1 && mask_ != nullptr ? b_.CreateAnd(bad, mask_) : bad;
    report(loop::fault_of(i), counts, lanes_.cast(b, i.dtype, DType::I64), 0);
    b = b_.CreateSelect(bad, power ? zero : one, b);
  }
  if (power) return int_power(a, b);
  if (!has_sign(i.dtype)) {
    Value* q = quotient(b_, i.dtype, a, b);
    return i.binary() == BinaryKind::Div ? q : b_.CreateSub(a, b_.CreateMul(q, b));
  }
  // The smallest integer over -1 wraps.
  Value* negates = b_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(b->getType()));
  b = b_.CreateSelect(negates, one, b);
  Value* q = quotient(b_, i.dtype, a, b);
  if (i.binary() == BinaryKind::Div) return b_.CreateSelect(negates, b_.CreateNeg(a), q);
  return b_.CreateSub(a, b_.CreateMul(q, b));
}

// By squaring, for as many digits as the largest exponent has.
Value* KernelEmitter::int_power(Value* base, Value* exponent) {
  llvm::Type* type = base->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* one = llvm::ConstantInt::get(type, 1);
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* header = block("power");
  BasicBlock* body = block("digit");
  BasicBlock* done = block("powered");
  b_.CreateBr(header);
  b_.SetInsertPoint(header);
  llvm::PHINode* result = b_.CreatePHI(type, 2);
  llvm::PHINode* square = b_.CreatePHI(type, 2);
  llvm::PHINode* left = b_.CreatePHI(type, 2);
  Value* more = b_.CreateICmpNE(left, zero);
  b_.CreateCondBr(lanes_of(more) == 1 ? more : b_.CreateOrReduce(more), body, done);
  b_.SetInsertPoint(body);
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(left, one), zero);
  Value* next = b_.CreateSelect(odd, b_.CreateMul(result, square), result);
  Value* squared = b_.CreateMul(square, square);
  Value* rest = b_.CreateLShr(left, one);
  result->addIncoming(one, before);
  square->addIncoming(base, before);
  left->addIncoming(exponent, before);
  result->addIncoming(next, body);
  square->addIncoming(squared, body);
  left->addIncoming(rest, body);
  b_.CreateBr(header);
  b_.SetInsertPoint(done);
  return result;
}

}  // namespace ricci::cpu
