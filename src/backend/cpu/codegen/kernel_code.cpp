// Generates a kernel's function: rows, then stages, then vectors along the last axis of the row.
#include "backend/cpu/codegen/kernel_code.h"

#include <algorithm>
#include <ranges>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include "ricci/support/error.h"

#include "backend/cpu/codegen/kernel_emitter.h"
#include "backend/cpu/run/tiling.h"
#include "op/kinds.h"
#include "support/fork.h"
#include "support/phases.h"
#include "type/small_dtype.h"

namespace ricci::cpu {
namespace {

using llvm::BasicBlock;
using llvm::Value;
using loop::Access;
using loop::Code;
using loop::Instr;
using loop::Kernel;
using loop::Reg;
using loop::Stage;

}  // namespace

KernelEmitter::KernelEmitter(llvm::Module& module, const Kernel& kernel, const std::string& symbol,
                             const TargetInfo& target)
    : module_(module),
      short_rows_(short_rows_for(kernel, target)),
      k_(short_rows_ > 0 ? with_rows_in_lanes(kernel) : kernel),
      b_(module.getContext()),
      lanes_(b_, target),
      target_(target) {
  llvm::Type* ptr = b_.getPtrTy();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, ptr}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
}

void KernelEmitter::run() {
  b_.SetInsertPoint(block("entry"));
  for (std::size_t a = 0; a < k_.arguments.size(); ++a) {
    arguments_.push_back(b_.CreateLoad(b_.getPtrTy(), element(function_->getArg(0), number(a), 8)));
  }
  first_ = range_field(0);
  last_ = range_field(1);
  if (short_rows_ == 0) find_crossed();
  if (k_.flat) {
    emit_row(number(0), number(0));
  } else if (short_rows_ > 0) {
    emit_short_rows();
  } else if (!crossed_.empty()) {
    emit_squares();
  } else {
    Loop rows = open(first_, last_, 1, "row");
    if (k_.accumulators.empty()) {
      emit_row(rows.index, number(0));
    } else {
      emit_accumulated(rows.index);
    }
    close(rows);
  }
  b_.CreateRetVoid();
}

void KernelEmitter::find_crossed() {
  std::vector<Reg> crossed = crossed_loads(k_);
  if (crossed.empty()) return;
  if (reads_squares(k_, target_)) {
    crossed_ = std::move(crossed);
    return;
  }
  // Whoever has the first part of the columns does all of them.
  Value* has_first = b_.CreateICmpEQ(range_field(2), number(0));
  last_ = b_.CreateSelect(has_first, last_, first_);
}

KernelEmitter::Loop KernelEmitter::open(Value* from, Value* to, std::int64_t step,
                                        const char* name) {
  Loop loop{.to = to, .step = step};
  BasicBlock* before = b_.GetInsertBlock();
  loop.header = block(name);
  BasicBlock* body = block(name);
  loop.exit = block(name);
  b_.CreateBr(loop.header);
  b_.SetInsertPoint(loop.header);
  loop.index = b_.CreatePHI(b_.getInt64Ty(), 2);
  loop.index->addIncoming(from, before);
  b_.CreateCondBr(b_.CreateICmpSLT(loop.index, to), body, loop.exit);
  b_.SetInsertPoint(body);
  return loop;
}

void KernelEmitter::close(const Loop& loop) {
  Value* next = b_.CreateAdd(loop.index, number(loop.step));
  loop.index->addIncoming(next, b_.GetInsertBlock());
  b_.CreateBr(loop.header);
  b_.SetInsertPoint(loop.exit);
}

void KernelEmitter::emit_accumulated(Value* kept_row) {
  for (const loop::Accumulator& acc : k_.accumulators) fill_local(acc);
  const auto blocked = [&](const loop::Accumulator& acc) { return in_blocks(acc); };
  if (std::ranges::any_of(k_.accumulators, blocked)) {
    constexpr std::int64_t BlockRows = 128;
    Value* end = range_field(3);
    Loop blocks = open(range_field(2), end, BlockRows, "block");
    Value* whole = b_.CreateAdd(blocks.index, number(BlockRows));
    Value* to = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, whole, end);
    Loop rows = open(blocks.index, to, 1, "accumulated");
    emit_row(kept_row, rows.index);
    close(rows);
    for (const loop::Accumulator& acc : k_.accumulators | std::views::filter(blocked)) {
      end_block(acc);
    }
    close(blocks);
  } else {
    Loop rows = open(range_field(2), range_field(3), 1, "accumulated");
    emit_row(kept_row, rows.index);
    close(rows);
  }
  Value* chunk =
      b_.CreateAdd(b_.CreateMul(b_.CreateSub(kept_row, first_), number(k_.chunks)), range_field(4));
  for (const loop::Accumulator& acc : k_.accumulators) {
    if (!acc.running) write_out(acc, chunk);
  }
}

void KernelEmitter::end_block(const loop::Accumulator& acc) {
  constexpr int Lanes = 8;
  const DType held = widened(acc.dtype);
  const std::int64_t length = length_of(acc);
  const auto move = [&](std::int64_t from, std::int64_t to, int lanes) {
    if (from == to) return;
    Loop loop = open(number(from), number(to), lanes, "blocks");
    Value* rows = element(argument(acc.local), loop.index, size_of(held));
    Value* behind = b_.CreateAdd(loop.index, number(length));
    Value* blocks = element(argument(acc.local), behind, size_of(held));
    Value* sum = lanes_.combine(acc.kind, held, lanes_.load(held, blocks, lanes, nullptr),
                                lanes_.load(held, rows, lanes, nullptr));
    lanes_.store(held, sum, blocks, lanes, nullptr);
    lanes_.store(held, lanes_.identity(acc.kind, held, lanes), rows, lanes, nullptr);
    close(loop);
  };
  const std::int64_t whole = length - length % Lanes;
  move(0, whole, Lanes);
  move(whole, length, 1);
}

void KernelEmitter::fill_local(const loop::Accumulator& acc) {
  const DType held = widened(acc.dtype);
  const std::int64_t all = in_blocks(acc) ? 2 * length_of(acc) : length_of(acc);
  Loop loop = open(number(0), number(all), 1, "fill");
  Value* at = element(argument(acc.local), loop.index, size_of(held));
  lanes_.store(held, lanes_.identity(acc.kind, held, 1), at, 1, nullptr);
  close(loop);
}

void KernelEmitter::write_out(const loop::Accumulator& acc, Value* slot) {
  const DType held = widened(acc.dtype);
  const DType out = k_.arguments[static_cast<std::size_t>(acc.argument)].dtype;
  Value* start = b_.CreateMul(slot, number(length_of(acc)));
  Loop loop = open(number(0), number(length_of(acc)), 1, "write");
  Value* from = in_blocks(acc) ? b_.CreateAdd(loop.index, number(length_of(acc))) : loop.index;
  Value* v = lanes_.load(held, element(argument(acc.local), from, size_of(held)), 1, nullptr);
  Value* to = element(argument(acc.argument), b_.CreateAdd(start, loop.index), size_of(out));
  lanes_.store(out, v, to, 1, nullptr);
  close(loop);
}

void KernelEmitter::emit_row(Value* kept_row, Value* accumulated_row) {
  indices_.assign(k_.extents.size(), nullptr);
  split(kept_row, 0, k_.kept);
  split(accumulated_row, k_.kept, k_.outer);
  scalars_.clear();
  reduced_.assign(k_.reductions.size(), nullptr);
  for (const Stage& stage : k_.stages) {
    if (stage.per_element) {
      emit_elements(stage);
    } else {
      emit_once(stage);
    }
  }
}

void KernelEmitter::split(Value* row, std::size_t from, std::size_t to) {
  for (std::size_t a = to; a-- > from;) {
    if (a == from) {
      indices_[a] = row;
    } else {
      Value* extent = number(k_.extents[a]);
      indices_[a] = b_.CreateURem(row, extent);
      row = b_.CreateUDiv(row, extent);
    }
  }
}

void KernelEmitter::emit_once(const Stage& stage) {
  lane_count_ = 1;
  mask_ = nullptr;
  for (const Reg r : stage.code) scalars_[r] = emit(k_.code[static_cast<std::size_t>(r)], nullptr);
  for (const loop::Store& s : stage.stores) {
    const DType d = k_.arguments[static_cast<std::size_t>(s.access.argument)].dtype;
    Value* at = element(argument(s.access.argument), place(s.access, k_.outer), size_of(d));
    lanes_.store(d, scalars_.at(s.value), at, 1, nullptr);
  }
  for (const std::int32_t m : stage.accumulators) {
    const loop::Accumulator& acc = k_.accumulators[static_cast<std::size_t>(m)];
    accumulate(acc, argument(acc.local), scalars_.at(acc.value));
  }
}

void KernelEmitter::accumulate(const loop::Accumulator& acc, Value* at, Value* value) {
  const DType held = widened(acc.dtype);
  Value* old = lanes_.load(held, at, lane_count_, mask_);
  Value* now = lanes_.combine(acc.kind, held, old, lanes_.spread(value, lane_count_));
  lanes_.store(held, now, at, lane_count_, mask_);
}

void KernelEmitter::emit_elements(const Stage& stage) {
  const std::size_t last_axis = k_.extents.size() - 1;
  std::vector<Loop> nest;
  lane_count_ = lanes_for(k_, stage, target_);
  unroll_ = unroll_for(k_, stage);
  const std::int64_t extent = k_.extents[last_axis];
  if (!k_.flat) {
    while (unroll_ > 1 && extent < std::int64_t{unroll_} * lane_count_) unroll_ /= 2;
    if (extent < lane_count_ && fits_lanes(k_, extent)) lane_count_ = static_cast<int>(extent);
    // Two vectors in step rather than one after the other: each waits less for itself. With
    // AVX-512 a vector is long enough.
    if (unroll_ > 1 && !target_.avx512 && extent % (std::int64_t{2} * lane_count_) == 0) {
      lane_count_ *= 2;
      unroll_ /= 2;
    }
  }
  // Reductions keep one partial result per vector of the unrolled loop, in memory of the stack
  // that becomes registers.
  partial_.clear();
  for (const std::int32_t m : stage.reductions) {
    const loop::Reduction& red = k_.reductions[static_cast<std::size_t>(m)];
    const DType held = widened(red.dtype);
    std::vector<Value*> slots;
    for (int u = 0; u < unroll_; ++u) {
      llvm::IRBuilder<> top(&function_->getEntryBlock(), function_->getEntryBlock().begin());
      slots.push_back(top.CreateAlloca(lanes_.waiting(held, lane_count_)));
      lanes_.keep(held, lanes_.identity(red.kind, held, lane_count_), slots.back());
    }
    partial_.push_back(std::move(slots));
  }
  for (std::size_t a = k_.outer; a < last_axis; ++a) {
    nest.push_back(open(number(0), number(k_.extents[a]), 1, "axis"));
    indices_[a] = nest.back().index;
  }
  emit_vectors(stage, last_axis);
  for (auto it = nest.rbegin(); it != nest.rend(); ++it) close(*it);
  for (std::size_t n = 0; n < stage.reductions.size(); ++n) {
    const auto m = static_cast<std::size_t>(stage.reductions[n]);
    const loop::Reduction& red = k_.reductions[m];
    const DType held = widened(red.dtype);
    std::vector<Value*> parts;
    for (Value* slot : partial_[n]) parts.push_back(lanes_.kept(held, slot, lane_count_));
    while (parts.size() > 1) {
      std::vector<Value*> half;
      for (std::size_t i = 0; i < parts.size(); i += 2) {
        half.push_back(lanes_.combine(red.kind, held, parts[i], parts[i + 1]));
      }
      parts = std::move(half);
    }
    reduced_[m] = lanes_.rounded(lanes_.across(red.kind, held, parts[0]), red.dtype);
  }
}

void KernelEmitter::emit_vectors(const Stage& stage, std::size_t axis) {
  const std::int64_t extent = k_.extents[axis];
  const std::int64_t step = std::int64_t{unroll_} * lane_count_;
  Value* from = k_.flat ? first_ : number(0);
  Value* to = k_.flat ? last_ : number(extent);
  bases_.clear();
  guards_.clear();
  splats_.clear();
  preheader_ = block("vectors");
  b_.CreateBr(preheader_);
  BasicBlock* start = block("start");
  b_.SetInsertPoint(start);
  Value* rest_from = from;
  const bool masked_only = is_short_kernel(k_) && (k_.flat || extent % lane_count_ != 0);
  if (!masked_only && (k_.flat || extent >= step)) {
    Value* whole = b_.CreateSub(to, b_.CreateSRem(b_.CreateSub(to, from), number(step)));
    Loop main = open(from, whole, step, "whole");
    mask_ = nullptr;
    inside_or_not(stage, axis, main.index, step, [&] {
      for (int u = 0; u < unroll_; ++u) {
        Value* more = number(std::int64_t{u} * lane_count_);
        emit_vector(stage, axis, u == 0 ? main.index : b_.CreateAdd(main.index, more), u);
      }
    });
    close(main);
    rest_from = whole;
  }
  if (masked_only || k_.flat || extent % step != 0) {
    Loop rest = open(rest_from, to, lane_count_, "rest");
    const bool whole_vectors = !k_.flat && extent % lane_count_ == 0;
    mask_ = nullptr;
    if (lane_count_ > 1 && !whole_vectors) {
      mask_ = first_lanes(b_.CreateSub(to, rest.index));
    }
    inside_or_not(stage, axis, rest.index, lane_count_,
                  [&] { emit_vector(stage, axis, rest.index, 0); });
    close(rest);
    mask_ = nullptr;
  }
  BasicBlock* end = b_.GetInsertBlock();
  b_.SetInsertPoint(preheader_);
  b_.CreateBr(start);
  b_.SetInsertPoint(end);
}

bool KernelEmitter::has_guards(const Stage& stage) const {
  return std::ranges::any_of(stage.code, [&](Reg r) {
    return !k_.code[static_cast<std::size_t>(r)].access.guards.empty();
  });
}

Value* KernelEmitter::total_place(const loop::Accumulator& acc, Value* column) {
  const std::size_t axis = k_.extents.size() - 1;
  Value* at = column;  // within the row
  std::int64_t behind = k_.extents[axis];
  for (std::size_t a = axis; a-- > k_.outer;) {
    at = b_.CreateAdd(at, b_.CreateMul(indices_[a], number(behind)));
    behind *= k_.extents[a];
  }
  return element(argument(acc.local), at, size_of(widened(acc.dtype)));
}

Value* KernelEmitter::running(const Instr& i, Value* column) {
  const loop::Accumulator& acc = k_.accumulators[static_cast<std::size_t>(i.reduction)];
  Value* at = total_place(acc, column);
  Value* before = lanes_.load(acc.dtype, at, lane_count_, mask_);
  Value* after = lanes_.combine(acc.kind, acc.dtype, before, spread_value(i.in[0]));
  lanes_.store(acc.dtype, after, at, lane_count_, mask_);
  return acc.exclusive ? before : after;
}

void KernelEmitter::emit_vector(const Stage& stage, std::size_t axis, Value* column, int unrolled) {
  indices_[axis] = column;
  vectors_.clear();
  for (const Reg r : stage.code) {
    vectors_[r] = emit(k_.code[static_cast<std::size_t>(r)], column);
  }
  for (const loop::Store& s : stage.stores) store(s, axis, column);
  for (const std::int32_t m : stage.accumulators) {
    const loop::Accumulator& acc = k_.accumulators[static_cast<std::size_t>(m)];
    accumulate(acc, total_place(acc, column), value(acc.value));
  }
  for (std::size_t n = 0; n < stage.reductions.size(); ++n) {
    const loop::Reduction& red = k_.reductions[static_cast<std::size_t>(stage.reductions[n])];
    reduce_into(red, partial_[n][static_cast<std::size_t>(unrolled)]);
  }
}

void KernelEmitter::reduce_into(const loop::Reduction& red, Value* slot) {
  const DType held = widened(red.dtype);
  Value* x = lanes_.spread(value(red.value), lane_count_);
  const DType from = k_.code[static_cast<std::size_t>(red.value)].dtype;
  if (is_logical(red.kind)) x = lanes_.nonzero(x, from);
  Value* old = lanes_.kept(held, slot, lane_count_);
  Value* now = lanes_.combine(red.kind, held, old, x);
  if (mask_ != nullptr) now = b_.CreateSelect(mask_, now, old);
  lanes_.keep(held, now, slot);
}

Value* KernelEmitter::value(Reg r) {
  const auto vector = vectors_.find(r);
  if (vector != vectors_.end()) return vector->second;
  return scalars_.at(r);
}

Value* KernelEmitter::spread_value(Reg r) {
  Value* v = value(r);
  if (lane_count_ == 1 || v->getType()->isVectorTy()) return v;
  if (vectors_.contains(r)) return lanes_.spread(v, lane_count_);
  // What does not change along the row is spread before the loop.
  auto& known = splats_[r];
  if (known == nullptr) {
    llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(preheader_);
    known = lanes_.spread(v, lane_count_);
  }
  return known;
}

Value* KernelEmitter::emit(const Instr& i, Value* column) {
  const auto in = [&](std::size_t k) { return operand(i, k, column); };
  switch (i.code) {
    case Code::Constant:
      return std::visit([&](auto v) { return lanes_.constant(i.dtype, v, 1); }, i.number);
    case Code::Index: return index_value(i, column);
    case Code::Load: return load(i, column);
    case Code::Copy: return in(0);
    case Code::Unary: return lanes_.unary(i, dtype_of(i.in[0]), in(0));
    case Code::Binary: {
      if (loop::is_partial(i)) return checked_binary(i, column);
      Value* a = in(0);
      return lanes_.binary(i.binary(), dtype_of(i.in[0]), a, in(1));
    }
    case Code::Compare: {
      Value* a = in(0);
      return lanes_.compare(i.compare(), dtype_of(i.in[0]), a, in(1));
    }
    case Code::Select: {
      Value* c = lanes_.nonzero(in(0), dtype_of(i.in[0]));
      Value* a = in(1);
      return b_.CreateSelect(c, a, in(2));
    }
    case Code::Cast: return lanes_.cast(in(0), dtype_of(i.in[0]), i.dtype);
    case Code::Reduced: return reduced_[static_cast<std::size_t>(i.reduction)];
    case Code::Running: return running(i, column);
    case Code::Random: return random(i, column);
  }
  return nullptr;
}

void add_kernels(llvm::Module& module, const std::vector<KernelSource>& kernels,
                 const TargetInfo& target) {
  const Phase phase("LLVM IR");
  for (const KernelSource& k : kernels) KernelEmitter(module, *k.kernel, k.symbol, target).run();
}

std::shared_ptr<JitCode> compile_kernels(const std::vector<KernelSource>& kernels,
                                         const JitOptions& options) {
  const UnforkedWork unforked;
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("kernels", *context);
  add_kernels(*module, kernels, options.target != nullptr ? *options.target : host_target());
  return jit_compile(std::move(module), std::move(context), options);
}

}  // namespace ricci::cpu
