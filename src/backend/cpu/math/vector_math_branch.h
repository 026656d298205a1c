// Rare cases behind a branch: one test for all lanes, and functions called lane by lane.
#pragma once

#include <string>
#include <vector>

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include "backend/cpu/math/vector_math_lanes.h"

namespace ricci::cpu::vm {

/// A function of this module for a rare case; the caller fills it.
inline llvm::Function* make_cold_function(llvm::Module& module, const std::string& name,
                                          llvm::Type* result,
                                          llvm::ArrayRef<llvm::Type*> arguments) {
  auto* type = llvm::FunctionType::get(result, arguments, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->addFnAttr(llvm::Attribute::Cold);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::WillReturn);
  return function;
}

/// `v8f32` and the like, to name such functions.
inline std::string type_suffix(llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const std::string lanes = vector == nullptr ? "" : "v" + std::to_string(vector->getNumElements());
  return lanes + (type->getScalarType()->isFloatTy() ? "f32" : "f64");
}

template <class F>
void for_each_lane(llvm::Type* type, F f) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  const unsigned count = vector == nullptr ? 1 : vector->getNumElements();
  for (unsigned lane = 0; lane < count; ++lane) f(lane);
}
inline llvm::Value* lane_of(llvm::IRBuilderBase& b, llvm::Value* x, unsigned lane) {
  return x->getType()->isVectorTy() ? b.CreateExtractElement(x, lane) : x;
}
inline llvm::Value* with_lane(llvm::IRBuilderBase& b, llvm::Value* all, llvm::Value* x,
                              unsigned lane) {
  return all->getType()->isVectorTy() ? b.CreateInsertElement(all, x, lane) : x;
}

/// `otherwise`, or what `rare` gives in a block of its own when the mask holds in any lane.
template <class F>
std::vector<llvm::Value*> when_any(Mask mask, std::vector<llvm::Value*> otherwise, F rare) {
  llvm::IRBuilderBase& b = mask.c->b;
  llvm::LLVMContext& context = b.getContext();
  llvm::Value* any = mask.v->getType()->isVectorTy() ? b.CreateOrReduce(mask.v) : mask.v;
  llvm::BasicBlock* before = b.GetInsertBlock();
  llvm::Function* function = before->getParent();
  llvm::BasicBlock* after = nullptr;
  if (b.GetInsertPoint() == before->end()) {
    after = llvm::BasicBlock::Create(context, "ordinary", function, before->getNextNode());
  } else {
    after = before->splitBasicBlock(b.GetInsertPoint(), "ordinary");
    before->getTerminator()->eraseFromParent();
  }
  auto* aside = llvm::BasicBlock::Create(context, "rare", function);
  b.SetInsertPoint(before);
  b.CreateCondBr(any, aside, after, llvm::MDBuilder(context).createBranchWeights(1, 1 << 20));
  b.SetInsertPoint(aside);
  const std::vector<llvm::Value*> other = rare();
  llvm::BasicBlock* aside_end = b.GetInsertBlock();
  b.CreateBr(after);
  b.SetInsertPoint(after, after->begin());
  for (std::size_t k = 0; k < otherwise.size(); ++k) {
    auto* merged = b.CreatePHI(otherwise[k]->getType(), 2);
    merged->addIncoming(otherwise[k], before);
    merged->addIncoming(other[k], aside_end);
    otherwise[k] = merged;
  }
  return otherwise;
}

}  // namespace ricci::cpu::vm
