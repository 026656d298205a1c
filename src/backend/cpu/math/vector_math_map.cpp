// One function in a loop of its own.
#include <optional>

#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "ricci/support/error.h"

#include "backend/cpu/math/vector_math.h"

namespace ricci::cpu {
namespace {

struct MapModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

template <class Kind>
std::optional<Kind> kind_named(std::string_view name, int count) {
  for (int k = 0; k < count; ++k) {
    if (name_of(static_cast<Kind>(k)) == name) return static_cast<Kind>(k);
  }
  return std::nullopt;
}

/// f(a[i…]), or f(a[i…], b[i…]).
llvm::Value* apply(llvm::IRBuilderBase& b, const std::string& name, llvm::Value* x, llvm::Value* y,
                   const TargetInfo& target) {
  const int unary_count = static_cast<int>(UnaryKind::BitwiseNot) + 1;
  const int binary_count = static_cast<int>(BinaryKind::ShiftRight) + 1;
  if (const auto kind = kind_named<UnaryKind>(name, unary_count)) {
    return emit_unary(b, *kind, x, target);
  }
  if (const auto kind = kind_named<BinaryKind>(name, binary_count)) {
    return emit_binary(b, *kind, x, y, target);
  }
  if (name == "exp_not_positive") return emit_exp_not_positive(b, x, target);
  throw InternalError(fmt::format("no function is called '{}'", name));
}

MapModule build(const MapKernel& kernel, const TargetInfo& target) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("map", *context);
  llvm::IRBuilder<> b(*context);
  auto* pointer = b.getPtrTy();
  auto* type =
      llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, b.getInt64Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "map", *module);
  for (unsigned k = 0; k < 3; ++k) function->addParamAttr(k, llvm::Attribute::NoAlias);
  auto* entry = llvm::BasicBlock::Create(*context, "entry", function);
  auto* loop = llvm::BasicBlock::Create(*context, "loop", function);
  auto* done = llvm::BasicBlock::Create(*context, "done", function);
  llvm::Type* scalar = kernel.dtype == DType::F32 ? b.getFloatTy() : b.getDoubleTy();
  llvm::Type* lanes = kernel.lanes == 1
                          ? scalar
                          : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(kernel.lanes));
  const llvm::MaybeAlign loose(static_cast<std::uint64_t>(size_of(kernel.dtype)));
  llvm::Value* count = function->getArg(3);
  b.SetInsertPoint(entry);
  b.CreateCondBr(b.CreateICmpSGT(count, b.getInt64(0)), loop, done);
  b.SetInsertPoint(loop);
  auto* i = b.CreatePHI(b.getInt64Ty(), 2);
  i->addIncoming(b.getInt64(0), entry);
  const auto load = [&](unsigned k) {
    return b.CreateAlignedLoad(lanes, b.CreateGEP(scalar, function->getArg(k), {i}), loose);
  };
  llvm::Value* y = apply(b, kernel.name, load(0), load(1), target);
  llvm::Type* out_scalar = y->getType()->getScalarType();
  if (out_scalar->isIntegerTy(1)) {
    out_scalar = b.getInt8Ty();
    y = b.CreateZExt(y, y->getType()->getWithNewBitWidth(8));
  }
  b.CreateAlignedStore(y, b.CreateGEP(out_scalar, function->getArg(2), {i}), llvm::MaybeAlign(1));
  llvm::Value* next = b.CreateAdd(i, b.getInt64(static_cast<std::uint64_t>(kernel.lanes)));
  i->addIncoming(next, b.GetInsertBlock());
  b.CreateCondBr(b.CreateICmpSLT(next, count), loop, done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return {std::move(context), std::move(module)};
}

const TargetInfo& target_of(const JitOptions& options) {
  return options.target != nullptr ? *options.target : host_target();
}

}  // namespace

std::shared_ptr<JitCode> jit_map(const MapKernel& kernel, const JitOptions& options) {
  MapModule made = build(kernel, target_of(options));
  return jit_compile(std::move(made.module), std::move(made.context), options);
}

EmittedCode emit_map(const MapKernel& kernel, const JitOptions& options) {
  MapModule made = build(kernel, target_of(options));
  return emit_code(std::move(made.module), std::move(made.context), options);
}

}  // namespace ricci::cpu
