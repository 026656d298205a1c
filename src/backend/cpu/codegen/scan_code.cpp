#include "backend/cpu/codegen/scan_code.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "backend/cpu/codegen/unrolled.h"
#include "op/loop_layout.h"
#include "support/fork.h"

namespace ricci::cpu {
namespace {

using llvm::Value;
using schedule::Storage;
using schedule::StorageId;

// Few enough that a stop comes soon, so many that looking costs nothing.
constexpr std::int64_t StepsBetweenLooks = 1024;

class ScanEmitter {
 public:
  ScanEmitter(llvm::Module& module, const ControlStep& step, const schedule::Items& items,
              const TargetInfo& target)
      : module_(module),
        step_(step),
        op_(*step.op.as<op::Scan>()),
        items_(items),
        b_(module.getContext()),
        body_(b_, target, items, *step.bodies[0].second->graph) {}

  void run(const std::string& symbol) {
    llvm::Type* ptr = b_.getPtrTy();
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, ptr}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    b_.SetInsertPoint(block("entry"));
    prepare();
    llvm::BasicBlock* before = b_.GetInsertBlock();
    llvm::BasicBlock* some = block("some");
    llvm::BasicBlock* loop = block("step");
    llvm::BasicBlock* look = block("look");
    llvm::BasicBlock* end = block("end");
    Value* length = number(op_.length.value());
    b_.CreateBr(some);
    b_.SetInsertPoint(some);
    llvm::PHINode* first = b_.CreatePHI(b_.getInt64Ty(), 2);
    Value* count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateSub(length, first),
                                            number(StepsBetweenLooks));
    Value* last = b_.CreateAdd(first, count);
    b_.CreateBr(loop);
    b_.SetInsertPoint(loop);
    llvm::PHINode* t = b_.CreatePHI(b_.getInt64Ty(), 2);
    emit_step(t);
    Value* next = b_.CreateAdd(t, b_.getInt64(1));
    t->addIncoming(first, some);
    t->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpULT(next, last), loop, look);
    b_.SetInsertPoint(look);
    llvm::LoadInst* stop = b_.CreateLoad(b_.getInt8Ty(), function_->getArg(2));
    stop->setAtomic(llvm::AtomicOrdering::Monotonic);
    Value* goes_on =
        b_.CreateAnd(b_.CreateICmpULT(next, length), b_.CreateICmpEQ(stop, b_.getInt8(0)));
    first->addIncoming(b_.getInt64(0), before);
    first->addIncoming(next, look);
    b_.CreateCondBr(goes_on, some, end);
    b_.SetInsertPoint(end);
    for (std::size_t k = 0; k < carries() && !op_.save_trajectory; ++k) {
      if (results_[k] != nullptr) body_.copy(leaf(k), carried_[k], results_[k]);
    }
    b_.CreateRetVoid();
  }

 private:
  llvm::BasicBlock* block(const char* name) {
    return llvm::BasicBlock::Create(module_.getContext(), name, function_);
  }
  Value* number(std::int64_t v) { return b_.getInt64(static_cast<std::uint64_t>(v)); }
  [[nodiscard]] std::size_t carries() const { return ScanLayout(op_).carries; }
  [[nodiscard]] std::size_t whole() const { return ScanLayout(op_).first_x(); }
  [[nodiscard]] StorageId leaf(std::size_t k) const { return items_.leaves[k].second; }
  [[nodiscard]] std::int64_t bytes(StorageId s) const {
    const Storage& st = items_.storages[static_cast<std::size_t>(s)];
    return st.elements * size_of(st.dtype);
  }
  Value* pointer(Value* table, std::size_t i) {
    return b_.CreateLoad(b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), table, i));
  }

  // Everything that stays where it is: carries and inner values on the stack, bcasts outside.
  void prepare() {
    for (std::size_t k = 0; k < step_.operands.size(); ++k) {
      operands_.push_back(pointer(function_->getArg(0), k));
    }
    for (std::size_t r = 0; r < step_.results.size(); ++r) {
      results_.push_back(step_.results[r].buffer < 0 ? nullptr : pointer(function_->getArg(1), r));
    }
    std::vector<bool> invariant(items_.storages.size(), false);
    for (std::size_t s = 0; s < items_.storages.size(); ++s) {
      const Storage& st = items_.storages[s];
      const auto id = static_cast<StorageId>(s);
      if (st.role == Storage::Role::Constant) {
        body_.place(id, constant(st.constant));
        invariant[s] = true;
      } else if (st.role != Storage::Role::Leaf) {
        body_.place(id, body_.slot(id));
      }
    }
    for (std::size_t k = 0; k < whole(); ++k) {
      if (k < carries()) {
        carried_.push_back(body_.slot(leaf(k)));
        body_.place(leaf(k), carried_[k]);
        body_.copy(leaf(k), operands_[k], carried_[k]);
      } else {
        body_.place(leaf(k), operands_[k]);
        invariant[static_cast<std::size_t>(leaf(k))] = true;
      }
    }
    body_.pack_invariants(invariant);
  }

  Value* constant(const Tensor& value) {
    const std::span<const std::byte> raw = value.bytes();
    auto* data = llvm::ConstantDataArray::getRaw(
        llvm::StringRef(reinterpret_cast<const char*>(raw.data()), raw.size()), raw.size(),
        b_.getInt8Ty());
    auto* global = new llvm::GlobalVariable(module_, data->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, data);
    global->setAlignment(llvm::Align(64));
    return global;
  }

  Value* row(Value* base, Value* t, std::int64_t row_bytes) {
    return b_.CreateGEP(b_.getInt8Ty(), base, b_.CreateMul(t, number(row_bytes)));
  }

  void emit_step(Value* t) {
    Value* at = op_.reverse ? b_.CreateSub(number(op_.length.value() - 1), t) : t;
    for (std::size_t k = whole(); k < step_.operands.size(); ++k) {
      body_.place(leaf(k), row(operands_[k], at, bytes(leaf(k))));
    }
    body_.emit();
    for (std::size_t r = 0; r < items_.outputs.size(); ++r) {
      const StorageId out = items_.outputs[r];
      const bool stacked = r >= carries() || op_.save_trajectory;
      if (stacked && results_[r] != nullptr) {
        body_.copy(out, body_.place_of(out), row(results_[r], at, bytes(out)));
      }
    }
    // All new carries are there before an old one goes.
    for (std::size_t k = 0; k < carries(); ++k) {
      body_.copy(items_.outputs[k], body_.place_of(items_.outputs[k]), carried_[k]);
    }
  }

  llvm::Module& module_;
  const ControlStep& step_;
  const op::Scan& op_;
  const schedule::Items& items_;
  llvm::IRBuilder<> b_;
  Unrolled body_;
  llvm::Function* function_ = nullptr;
  std::vector<Value*> operands_;
  std::vector<Value*> results_;
  std::vector<Value*> carried_;
};

}  // namespace

bool add_scan(llvm::Module& module, const ControlStep& step, const std::string& symbol,
              const TargetInfo& target) {
  const auto* op = step.op.as<op::Scan>();
  if (op == nullptr || op->length.value() == 0) return false;
  const bool keeps_some =
      op->save_trajectory && op->num_checkpoints > 0 && op->num_checkpoints < op->length.value();
  if (keeps_some) return false;
  const Graph& graph = *step.bodies[0].second->graph;
  const schedule::Items items = schedule::make_items(graph);
  if (!can_unroll(items, graph, target)) return false;
  ScanEmitter(module, step, items, target).run(symbol);
  return true;
}

std::string scan_text(const ControlStep& step) {
  const UnforkedWork unforked;
  llvm::LLVMContext context;
  llvm::Module module("scan", context);
  if (!add_scan(module, step, ScanSymbol, host_target())) return {};
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

std::shared_ptr<JitCode> compile_scan(const ControlStep& step, const JitOptions& options) {
  const UnforkedWork unforked;
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("scan", *context);
  check_internal(add_scan(*module, step, ScanSymbol, host_target()), "this loop has no code");
  return jit_compile(std::move(module), std::move(context), options);
}

}  // namespace ricci::cpu
