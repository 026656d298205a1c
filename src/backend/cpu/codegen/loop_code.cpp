#include "backend/cpu/codegen/loop_code.h"

#include <limits>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include "ricci/support/error.h"

#include "backend/cpu/codegen/unrolled.h"
#include "support/fork.h"

namespace ricci::cpu {
namespace {

using llvm::Value;
using loop::StorageId;
using loop::WrittenBody;

// Few enough that a stop comes soon, so many that looking costs nothing.
constexpr std::int64_t TripsBetweenLooks = 1024;

class LoopEmitter {
 public:
  LoopEmitter(llvm::Module& module, const loop::WrittenLoop& loop, const TargetInfo& target)
      : module_(module),
        loop_(loop),
        plan_(loop.plan),
        b_(module.getContext()),
        body_(b_, target, loop.body) {
    if (loop.condition) condition_.emplace(b_, target, *loop.condition);
  }

  void run(const std::string& symbol) {
    llvm::Type* ptr = b_.getPtrTy();
    auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, ptr}, false);
    function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
    function_->addFnAttr(llvm::Attribute::NoUnwind);
    b_.SetInsertPoint(block("entry"));
    prepare();
    emit_end(emit_trips());
  }

 private:
  // The trips, in runs of TripsBetweenLooks; a condition is asked before the first trip and at the
  // end of each. The number of trips made.
  Value* emit_trips() {
    const std::int64_t most = plan_.most_trips.value_or(std::numeric_limits<std::int64_t>::max());
    if (most == 0) return number(0);
    llvm::BasicBlock* some = block("some");
    llvm::BasicBlock* trip = block("trip");
    llvm::BasicBlock* look = block("look");
    llvm::BasicBlock* end = block("end");
    Value* length = number(most);
    Value* begins = condition_ ? emit_condition() : b_.getTrue();
    llvm::BasicBlock* before = b_.GetInsertBlock();
    if (condition_) {
      b_.CreateCondBr(begins, some, end);
    } else {
      b_.CreateBr(some);
    }
    b_.SetInsertPoint(some);
    llvm::PHINode* first = b_.CreatePHI(b_.getInt64Ty(), 2);
    Value* count = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b_.CreateSub(length, first),
                                            number(TripsBetweenLooks));
    Value* last = b_.CreateAdd(first, count);
    b_.CreateBr(trip);
    b_.SetInsertPoint(trip);
    llvm::PHINode* t = b_.CreatePHI(b_.getInt64Ty(), 2);
    emit_trip(t);
    Value* next = b_.CreateAdd(t, number(1));
    Value* wanted = condition_ ? emit_condition() : nullptr;
    t->addIncoming(first, some);
    t->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(both(b_.CreateICmpULT(next, last), wanted), trip, look);
    b_.SetInsertPoint(look);
    llvm::LoadInst* stop = b_.CreateLoad(b_.getInt8Ty(), function_->getArg(2));
    stop->setAtomic(llvm::AtomicOrdering::Monotonic);
    Value* goes_on =
        b_.CreateAnd(b_.CreateICmpULT(next, length), b_.CreateICmpEQ(stop, b_.getInt8(0)));
    first->addIncoming(number(0), before);
    first->addIncoming(next, look);
    b_.CreateCondBr(both(goes_on, wanted), some, end);
    b_.SetInsertPoint(end);
    if (!condition_) return next;
    llvm::PHINode* made = b_.CreatePHI(b_.getInt64Ty(), 2);
    made->addIncoming(number(0), before);
    made->addIncoming(next, look);
    return made;
  }

  void emit_end(Value* trips) {
    for (std::size_t k = 0; k < plan_.carries.size(); ++k) {
      const std::int32_t last = plan_.carries[k].last;
      if (last >= 0) body_.copy(input(k), carried_[k], result(last));
    }
    if (plan_.trip_count >= 0) {
      b_.CreateAlignedStore(b_.CreateTrunc(trips, b_.getInt32Ty()), result(plan_.trip_count),
                            llvm::Align(1));
    }
    b_.CreateRetVoid();
  }

  llvm::BasicBlock* block(const char* name) {
    return llvm::BasicBlock::Create(module_.getContext(), name, function_);
  }
  Value* number(std::int64_t v) { return b_.getInt64(static_cast<std::uint64_t>(v)); }
  Value* both(Value* a, Value* b) { return b == nullptr ? a : b_.CreateAnd(a, b); }
  [[nodiscard]] StorageId input(std::size_t k) const { return loop_.body.inputs[k]; }
  [[nodiscard]] std::int64_t bytes(StorageId s) const {
    const loop::Storage& st = loop_.body.storages[static_cast<std::size_t>(s)];
    return st.elements * size_of(st.dtype);
  }
  // Read where the function begins, and once.
  Value* pointer(std::vector<Value*>& known, unsigned table, std::int32_t i) {
    const auto index = static_cast<std::size_t>(i);
    if (known.size() <= index) known.resize(index + 1, nullptr);
    if (known[index] == nullptr) {
      known[index] = b_.CreateLoad(
          b_.getPtrTy(), b_.CreateConstGEP1_64(b_.getPtrTy(), function_->getArg(table), index));
    }
    return known[index];
  }
  Value* operand(std::int32_t k) { return pointer(operands_, 0, k); }
  Value* result(std::int32_t r) { return pointer(results_, 1, r); }

  // Everything that stays where it is: carries and inner values on the stack, whole operands
  // outside.
  void prepare() {
    for (const loop::RowPort& x : plan_.xs) (void)operand(x.array);
    for (const loop::RowPort& y : plan_.ys) {
      if (y.array >= 0) (void)result(y.array);
    }
    if (plan_.trip_count >= 0) (void)result(plan_.trip_count);
    std::vector<bool> invariant = place_storages(body_, loop_.body);
    for (std::size_t k = 0; k < plan_.carries.size(); ++k) {
      const loop::Carry& carry = plan_.carries[k];
      carried_.push_back(body_.place_of(input(k)));
      body_.copy(input(k), operand(carry.operand), carried_[k]);
      if (carry.last >= 0) (void)result(carry.last);
      counts_.push_back(nullptr);
      rows_.push_back(nullptr);
      if (!carry.kept) continue;
      (void)result(carry.kept->result);
      if (carry.kept->pace.every_trip()) continue;
      counts_[k] = counter(carry.kept->pace.start);
      rows_[k] = counter(carry.kept->rows.first);
    }
    for (std::size_t k = 0; k < plan_.wholes.size(); ++k) {
      const StorageId s = input(plan_.carries.size() + k);
      body_.place(s, operand(plan_.wholes[k]));
      invariant[static_cast<std::size_t>(s)] = true;
    }
    body_.pack_invariants(invariant);
    if (!condition_) return;
    const std::vector<bool> constants = place_storages(*condition_, *loop_.condition);
    for (std::size_t k = 0; k < carried_.size(); ++k) {
      condition_->place(loop_.condition->inputs[k], carried_[k]);
    }
    condition_->pack_invariants(constants);
  }

  // Constants, and room on the stack for what is computed and for carries. Which do not change?
  std::vector<bool> place_storages(Unrolled& code, const WrittenBody& body) {
    std::vector<bool> constants(body.storages.size(), false);
    std::vector<bool> elsewhere(body.storages.size(), false);
    const bool main = &body == &loop_.body;
    for (std::size_t k = main ? carried_count() : 0; k < body.inputs.size(); ++k) {
      elsewhere[static_cast<std::size_t>(body.inputs[k])] = true;
    }
    for (std::size_t s = 0; s < body.storages.size(); ++s) {
      const auto id = static_cast<StorageId>(s);
      constants[s] = body.storages[s].constant.has_value();
      if (constants[s]) {
        code.place(id, constant(*body.storages[s].constant));
      } else if (!elsewhere[s]) {
        code.place(id, code.slot(id));
      }
    }
    return constants;
  }
  [[nodiscard]] std::size_t carried_count() const { return plan_.carries.size(); }

  Value* counter(std::int64_t start) {
    llvm::AllocaInst* place = b_.CreateAlloca(b_.getInt64Ty());
    b_.CreateStore(number(start), place);
    return place;
  }

  Value* constant(const Tensor& value) {
    const Tensor whole = value.contiguous();
    const std::span<const std::byte> raw = whole.bytes();
    auto* data = llvm::ConstantDataArray::getRaw(
        llvm::StringRef(reinterpret_cast<const char*>(raw.data()), raw.size()), raw.size(),
        b_.getInt8Ty());
    auto* global = new llvm::GlobalVariable(module_, data->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, data);
    global->setAlignment(llvm::Align(64));
    return global;
  }

  // Of the n-th trip, or of the n-th that is kept.
  Value* row_number(const loop::RowWalk& rows, Value* n) {
    if (rows.first == 0 && rows.step == 1) return n;
    if (rows.step == -1) return b_.CreateSub(number(rows.first), n);
    return b_.CreateAdd(number(rows.first), b_.CreateMul(n, number(rows.step)));
  }
  Value* row(Value* base, Value* at, std::int64_t row_bytes) {
    return b_.CreateGEP(b_.getInt8Ty(), base, b_.CreateMul(at, number(row_bytes)));
  }

  Value* emit_condition() {
    condition_->emit();
    return condition_->all_nonzero(loop_.condition->outputs[0]);
  }

  void emit_trip(Value* t) {
    const std::size_t carries = plan_.carries.size();
    for (std::size_t k = 0; k < plan_.xs.size(); ++k) {
      const StorageId s = input(carries + plan_.wholes.size() + k);
      body_.place(s, row(operand(plan_.xs[k].array), row_number(plan_.xs[k].rows, t), bytes(s)));
    }
    body_.emit();
    for (std::size_t k = 0; k < carries; ++k) emit_kept(k, t);
    for (std::size_t k = 0; k < plan_.ys.size(); ++k) {
      const auto& [array, rows] = plan_.ys[k];
      if (array < 0) continue;
      const StorageId s = loop_.body.outputs[carries + k];
      body_.copy(s, body_.place_of(s), row(result(array), row_number(rows, t), bytes(s)));
    }
    // All new carries are there before an old one goes.
    for (std::size_t k = 0; k < carries; ++k) {
      const StorageId out = loop_.body.outputs[k];
      body_.copy(out, body_.place_of(out), carried_[k]);
    }
  }

  void emit_kept(std::size_t k, Value* t) {
    if (!plan_.carries[k].kept) return;
    const loop::KeptRows& kept = *plan_.carries[k].kept;
    const StorageId s = kept.entering ? input(k) : loop_.body.outputs[k];
    const auto keep = [&](Value* at) {
      body_.copy(s, body_.place_of(s), row(result(kept.result), at, bytes(s)));
    };
    if (kept.pace.every_trip()) return keep(row_number(kept.rows, t));
    llvm::BasicBlock* kept_trip = block("kept");
    llvm::BasicBlock* on = block("on");
    Value* count = b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), counts_[k]), number(kept.pace.add));
    Value* is_kept = b_.CreateICmpUGE(count, number(kept.pace.limit));
    b_.CreateStore(b_.CreateSelect(is_kept, b_.CreateSub(count, number(kept.pace.limit)), count),
                   counts_[k]);
    b_.CreateCondBr(is_kept, kept_trip, on);
    b_.SetInsertPoint(kept_trip);
    Value* at = b_.CreateLoad(b_.getInt64Ty(), rows_[k]);
    keep(at);
    b_.CreateStore(b_.CreateAdd(at, number(kept.rows.step)), rows_[k]);
    b_.CreateBr(on);
    b_.SetInsertPoint(on);
  }

  llvm::Module& module_;
  const loop::WrittenLoop& loop_;
  const loop::LoopPlan& plan_;
  llvm::IRBuilder<> b_;
  Unrolled body_;
  std::optional<Unrolled> condition_;
  llvm::Function* function_ = nullptr;
  std::vector<Value*> operands_;
  std::vector<Value*> results_;
  std::vector<Value*> carried_;
  std::vector<Value*> counts_;  // of paces, per carry; null where every trip is kept, or none
  std::vector<Value*> rows_;    // the next row that is kept
};

}  // namespace

void add_loop(llvm::Module& module, const loop::WrittenLoop& loop, const std::string& symbol,
              const TargetInfo& target) {
  LoopEmitter(module, loop, target).run(symbol);
}

std::string loop_text(const loop::WrittenLoop& loop) {
  const UnforkedWork unforked;
  llvm::LLVMContext context;
  llvm::Module module("loop", context);
  add_loop(module, loop, LoopSymbol, host_target());
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

std::shared_ptr<JitCode> compile_loop(const loop::WrittenLoop& loop, const JitOptions& options) {
  const UnforkedWork unforked;
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("loop", *context);
  add_loop(*module, loop, LoopSymbol, host_target());
  return jit_compile(std::move(module), std::move(context), options);
}

}  // namespace ricci::cpu
