#include "backend/cpu/codegen/splat_constants.h"

#include <map>
#include <vector>

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

namespace ricci::cpu {
namespace {

constexpr unsigned RegisterBits = 256;

// Shifts and the like want their constants in the instruction.
bool takes_memory(const llvm::Instruction& i, const llvm::Type& type) {
  if (llvm::isa<llvm::PHINode>(i)) return false;
  return type.isFPOrFPVectorTy() || i.getOpcode() == llvm::Instruction::Add;
}

bool is_wanted(const llvm::Value* v, const llvm::DataLayout& layout) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant == nullptr || !llvm::isa<llvm::FixedVectorType>(v->getType())) return false;
  const llvm::Type* element = v->getType()->getScalarType();
  if (element->getPrimitiveSizeInBits() < 32) return false;
  // A register of zeros is made, not loaded.
  if (constant->isNullValue() || constant->getSplatValue() == nullptr) return false;
  return layout.getTypeSizeInBits(v->getType()) % RegisterBits == 0;
}

}  // namespace

void keep_splats_in_memory(llvm::Module& module) {
  const llvm::DataLayout& layout = module.getDataLayout();
  std::map<llvm::Constant*, llvm::GlobalVariable*> known;
  for (llvm::Function& function : module) {
    std::vector<llvm::Use*> uses;
    for (llvm::Instruction& i : llvm::instructions(function)) {
      for (llvm::Use& use : i.operands()) {
        if (is_wanted(use.get(), layout) && takes_memory(i, *use->getType())) uses.push_back(&use);
      }
    }
    for (llvm::Use* use : uses) {
      auto* constant = llvm::cast<llvm::Constant>(use->get());
      llvm::GlobalVariable*& global = known[constant];
      if (global == nullptr) {
        global = new llvm::GlobalVariable(module, constant->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, constant, "splat");
        global->setAlignment(llvm::Align(RegisterBits / 8));
      }
      llvm::IRBuilder<> b(llvm::cast<llvm::Instruction>(use->getUser()));
      use->set(b.CreateAlignedLoad(constant->getType(), global, global->getAlign()));
    }
  }
}

}  // namespace ricci::cpu
