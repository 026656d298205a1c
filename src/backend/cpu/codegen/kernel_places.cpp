// Where a kernel's elements are: loads and stores of vectors, guarded ones, indices out of range.
#include <algorithm>
#include <cstdlib>

#include <llvm/IR/Intrinsics.h>

#include "backend/cpu/codegen/kernel_code.h"
#include "backend/cpu/codegen/kernel_emitter.h"
#include "backend/cpu/codegen/random_lanes.h"

namespace ricci::cpu {
namespace {

using llvm::BasicBlock;
using llvm::Value;

}  // namespace

Value* KernelEmitter::at_index(std::int64_t offset, const std::vector<std::int64_t>& strides,
                               std::size_t axis) {
  Value* at = number(offset);
  for (std::size_t a = 0; a < axis; ++a) {
    if (strides[a] == 0) continue;
    at = b_.CreateAdd(at, b_.CreateMul(indices_[a], number(strides[a])));
  }
  return at;
}

Value* KernelEmitter::lane_numbers(unsigned bits) {
  std::vector<llvm::Constant*> values;
  values.reserve(static_cast<std::size_t>(lane_count_));
  for (int i = 0; i < lane_count_; ++i) {
    values.push_back(llvm::ConstantInt::get(b_.getIntNTy(bits), static_cast<std::uint64_t>(i)));
  }
  return lane_count_ == 1 ? static_cast<Value*>(values[0]) : llvm::ConstantVector::get(values);
}

Value* KernelEmitter::first_lanes(Value* count) {
  // There are few, so 32 bits count them: the comparison is half as long.
  Value* few = b_.CreateTrunc(count, b_.getInt32Ty());
  return b_.CreateICmpULT(lane_numbers(32), lanes_.spread(few, lane_count_));
}

Value* KernelEmitter::guard_start(const loop::Guard& guard, std::size_t axis) {
  auto& known = guards_[&guard];
  if (known == nullptr) {
    llvm::IRBuilder<>::InsertPointGuard here(b_);
    b_.SetInsertPoint(preheader_);
    known = at_index(guard.offset, guard.strides, axis);
  }
  return known;
}

Value* KernelEmitter::guards_hold(const Stage& stage, std::size_t axis, Value* column,
                                  std::int64_t width) {
  Value* all = b_.getTrue();
  for (const Reg r : stage.code) {
    const Instr& i = k_.code[static_cast<std::size_t>(r)];
    for (const loop::Guard& g : i.access.guards) {
      const std::int64_t stride = g.strides[axis];
      const std::int64_t span = (stride < 0 ? -stride : stride) * (width - 1);
      Value* at = b_.CreateAdd(guard_start(g, axis), b_.CreateMul(column, number(stride)));
      if (stride < 0) at = b_.CreateSub(at, number(span));
      const std::int64_t left = std::max<std::int64_t>(g.limit - span, 0);
      all = b_.CreateAnd(all, b_.CreateICmpULT(at, number(left)));
    }
  }
  return all;
}

Value* KernelEmitter::index_value(const Instr& i, Value* column) {
  const std::size_t axis = k_.extents.size() - 1;
  Value* at = place(i.access, column == nullptr ? k_.outer : axis);
  const DType whole = DType::I64;
  if (column == nullptr || i.access.strides[axis] == 0) return lanes_.cast(at, whole, i.dtype);
  const std::int64_t stride = i.access.strides[axis];
  at = b_.CreateAdd(at, b_.CreateMul(column, number(stride)));
  Value* steps = b_.CreateMul(lane_numbers(64), lanes_.spread(number(stride), lane_count_));
  if (lane_count_ == 1) return lanes_.cast(at, whole, i.dtype);
  return lanes_.cast(b_.CreateAdd(lanes_.spread(at, lane_count_), steps), whole, i.dtype);
}

Value* KernelEmitter::whole_number(Reg r) {
  Value* v = value(r);
  if (v->getType()->isVectorTy()) v = b_.CreateExtractElement(v, std::uint64_t{0});
  return lanes_.cast(v, dtype_of(r), DType::I64);
}

Value* KernelEmitter::random(const Instr& i, Value* column) {
  const std::size_t axis = k_.extents.size() - 1;
  const int lanes = column == nullptr ? 1 : lane_count_;
  Value* first = at_index(i.access.offset, i.access.strides, column == nullptr ? k_.outer : axis);
  const std::int64_t stride = column == nullptr ? 0 : i.access.strides[axis];
  if (stride != 0) first = b_.CreateAdd(first, b_.CreateMul(column, number(stride)));
  Value* key = number(std::get<std::int64_t>(i.number));
  if (i.in[1] != loop::NoReg) key = b_.CreateAdd(key, whole_number(i.in[1]));
  return RandomLanes(b_, target_, lanes_)
      .draw(i, {whole_number(i.in[0]), key}, {first, stride, lanes});
}

Value* KernelEmitter::run_start(const Access& access, std::size_t axis) {
  auto& known = bases_[&access];
  if (known == nullptr) {
    llvm::IRBuilder<>::InsertPointGuard guard(b_);
    b_.SetInsertPoint(preheader_);
    const DType d = k_.arguments[static_cast<std::size_t>(access.argument)].dtype;
    known = element(argument(access.argument), place(access, axis), size_of(d));
  }
  return known;
}

Value* KernelEmitter::holds(const Access& access, Value* column) {
  const std::size_t axis = k_.extents.size() - 1;
  Value* all = nullptr;
  for (const loop::Guard& g : access.guards) {
    Value* at = nullptr;
    if (column == nullptr) {
      at = at_index(g.offset, g.strides, k_.outer);
    } else {
      at = b_.CreateAdd(guard_start(g, axis), b_.CreateMul(column, number(g.strides[axis])));
      if (lane_count_ > 1) {
        Value* stride = lanes_.spread(number(g.strides[axis]), lane_count_);
        at = b_.CreateAdd(lanes_.spread(at, lane_count_), b_.CreateMul(lane_numbers(64), stride));
      }
    }
    Value* one = b_.CreateICmpULT(at, lanes_.spread(number(g.limit), lanes_of(at)));
    all = all == nullptr ? one : b_.CreateAnd(all, one);
  }
  return all;
}

Value* KernelEmitter::guarded_load(const Instr& i, Value* column) {
  const Access& access = i.access;
  const std::int64_t bytes = size_of(i.dtype);
  const std::size_t axis = k_.extents.size() - 1;
  const int lanes = column == nullptr ? 1 : lane_count_;
  Value* inside = holds(access, column);
  Value* other = std::visit([&](auto v) { return lanes_.constant(i.dtype, v, lanes); }, i.number);
  const std::int64_t stride = column == nullptr ? 0 : access.strides[axis];
  Value* start = column == nullptr
                     ? element(argument(access.argument), place(access, k_.outer), bytes)
                     : run_start(access, axis);
  if (column != nullptr && (stride == 1 || lanes == 1)) {
    start = element(start, b_.CreateMul(column, number(stride)), bytes);
  }
  if (lanes == 1) {
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* read = block("read");
    BasicBlock* done = block("done");
    b_.CreateCondBr(inside, read, done);
    b_.SetInsertPoint(read);
    Value* there = lanes_.load(i.dtype, start, 1, nullptr);
    BasicBlock* end = b_.GetInsertBlock();
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
    llvm::PHINode* either = b_.CreatePHI(there->getType(), 2);
    either->addIncoming(other, before);
    either->addIncoming(there, end);
    return either;
  }
  Value* mask = mask_ == nullptr ? inside : b_.CreateAnd(inside, mask_);
  Value* there =
      stride == 1
          ? lanes_.load(i.dtype, start, lanes, mask)
          : lanes_.gather(i.dtype, addresses(start, column, stride, nullptr, bytes), lanes, mask);
  return b_.CreateSelect(inside, there, other);
}

Value* KernelEmitter::load(const Instr& i, Value* column) {
  const Access& access = i.access;
  if (const auto square = squares_.find(&access); square != squares_.end() && column != nullptr) {
    Value* at = b_.CreateMul(square_row_, number(lane_count_));
    return lanes_.load(i.dtype, element(square->second, at, size_of(i.dtype)), lane_count_,
                       nullptr);
  }
  bool inside = is_inside_;
  if (short_rows_ > 0) {
    if (Value* known = load_from_rows(i, column)) return known;
    inside = reads_here(access).value_or(false);
  }
  if (!access.guards.empty() && (column == nullptr || !inside)) return guarded_load(i, column);
  const std::int64_t bytes = size_of(i.dtype);
  const std::size_t axis = k_.extents.size() - 1;
  if (column == nullptr) {
    Value* at = place(access, k_.outer);
    for (const loop::Term& t : access.terms) at = b_.CreateAdd(at, moved(t, scalars_.at(t.index)));
    return lanes_.load(i.dtype, element(argument(access.argument), at, bytes), 1, nullptr);
  }
  Value* start = run_start(access, axis);
  const std::int64_t stride = access.strides[axis];
  Value* scattered = nullptr;  // places that differ from lane to lane
  for (const loop::Term& t : access.terms) {
    Value* index = value(t.index);
    if (index->getType()->isVectorTy()) {
      Value* by = moved(t, index);
      scattered = scattered == nullptr ? by : b_.CreateAdd(scattered, by);
    } else {
      start = element(start, moved(t, index), bytes);
    }
  }
  if (scattered == nullptr && stride == 0 && access.terms.empty() && access.guards.empty()) {
    auto& known = invariant(&access);
    if (known == nullptr) {
      llvm::IRBuilder<>::InsertPointGuard guard(b_);
      b_.SetInsertPoint(preheader_);
      known = lanes_.load(i.dtype, start, 1, nullptr);
    }
    return known;
  }
  if (scattered == nullptr && stride == 0) return lanes_.load(i.dtype, start, 1, nullptr);
  if (scattered == nullptr && (stride == 1 || lane_count_ == 1)) {
    return lanes_.load(i.dtype, element(start, b_.CreateMul(column, number(stride)), bytes),
                       lane_count_, mask_);
  }
  if (scattered == nullptr && mask_ == nullptr && is_narrow_stride(stride, i.dtype)) {
    Value* first = element(start, b_.CreateMul(column, number(stride)), bytes);
    return narrow_load(i.dtype, first, stride);
  }
  return lanes_.gather(i.dtype, addresses(start, column, stride, scattered, bytes), lane_count_,
                       mask_);
}

std::vector<Value*> KernelEmitter::load_run(DType dtype, Value* start, const VectorRun& run) {
  std::vector<Value*> vectors;
  for (int v = 0; v < run.count(); ++v) {
    Value* at = element(start, number(run.start(v)), size_of(dtype));
    vectors.push_back(lanes_.load_stored(dtype, at, run.lanes, nullptr));
  }
  return vectors;
}

Value* KernelEmitter::narrow_load(DType dtype, Value* first, std::int64_t stride) {
  const std::int64_t apart = std::abs(stride);
  const VectorRun run{(lane_count_ - 1) * apart + 1, lane_count_};
  if (stride < 0) first = element(first, number(1 - run.length), size_of(dtype));
  std::vector<std::int64_t> positions;
  for (int l = 0; l < lane_count_; ++l) {
    positions.push_back(apart * (stride < 0 ? lane_count_ - 1 - l : l));
  }
  return lanes_.from_stored(picked(b_, run, load_run(dtype, first, run), positions), dtype);
}

Value* KernelEmitter::addresses(Value* start, Value* column, std::int64_t stride, Value* more,
                                std::int64_t bytes) {
  Value* at =
      b_.CreateAdd(lanes_.spread(b_.CreateMul(column, number(stride)), lane_count_),
                   b_.CreateMul(lane_numbers(64), lanes_.spread(number(stride), lane_count_)));
  if (more != nullptr) at = b_.CreateAdd(at, more);
  return b_.CreateGEP(b_.getInt8Ty(), start,
                      b_.CreateMul(at, lanes_.spread(number(bytes), lane_count_)));
}

Value* KernelEmitter::moved(const loop::Term& t, Value* index) {
  const int n = lanes_of(index);
  index = lanes_.cast(index, dtype_of(t.index), DType::I64);
  Value* zero = lanes_.spread(number(0), n);
  if (t.clamp) {
    Value* most = lanes_.spread(number(std::max<std::int64_t>(t.limit - 1, 0)), n);
    index = b_.CreateSelect(b_.CreateICmpSLT(index, zero), zero, index);
    index = b_.CreateSelect(b_.CreateICmpSGT(index, most), most, index);
  } else {
    Value* bad = b_.CreateICmpUGE(index, lanes_.spread(number(t.limit), n));
    Value* counts = n > 1 && mask_ != nullptr ? b_.CreateAnd(bad, mask_) : bad;
    report(loop::FaultKind::Index, counts, index, t.limit);
    index = b_.CreateSelect(bad, zero, index);
  }
  return b_.CreateMul(index, lanes_.spread(number(t.stride), n));
}

void KernelEmitter::report(loop::FaultKind kind, Value* bad, Value* numbers, std::int64_t limit) {
  Value* any = lanes_of(bad) == 1 ? bad : b_.CreateOrReduce(bad);
  BasicBlock* fault = block("fault");
  BasicBlock* fine = block("fine");
  b_.CreateCondBr(any, fault, fine);
  b_.SetInsertPoint(fault);
  Value* which = numbers;
  if (lanes_of(numbers) > 1) {
    // The lowest lane that is out of range.
    Value* bits = b_.CreateBitCast(bad, b_.getIntNTy(static_cast<unsigned>(lanes_of(bad))));
    Value* lane =
        b_.CreateIntrinsic(llvm::Intrinsic::cttz, {bits->getType()}, {bits, b_.getTrue()});
    which = b_.CreateExtractElement(numbers, lane);
  }
  Value* out = function_->getArg(2);
  // The first one stays.
  BasicBlock* first = block("first");
  b_.CreateCondBr(b_.CreateICmpEQ(b_.CreateLoad(b_.getInt64Ty(), out), number(0)), first, fine);
  b_.SetInsertPoint(first);
  b_.CreateStore(number(static_cast<std::int64_t>(kind)), out);
  b_.CreateStore(which, element(out, number(1), 8));
  b_.CreateStore(number(limit), element(out, number(2), 8));
  b_.CreateBr(fine);
  b_.SetInsertPoint(fine);
}

void KernelEmitter::store(const loop::Store& s, std::size_t axis, Value* column) {
  const DType d = k_.arguments[static_cast<std::size_t>(s.access.argument)].dtype;
  const std::int64_t stride = s.access.strides[axis];
  Value* start = run_start(s.access, axis);
  Value* v = value(s.value);
  if (stride == 1 || lane_count_ == 1) {
    Value* at = element(start, b_.CreateMul(column, number(stride)), size_of(d));
    lanes_.store(d, v, at, lane_count_, mask_);
    return;
  }
  Value* all = mask_ != nullptr ? mask_
                                : llvm::ConstantInt::getTrue(llvm::FixedVectorType::get(
                                      b_.getInt1Ty(), static_cast<unsigned>(lane_count_)));
  lanes_.scatter(d, v, addresses(start, column, stride, nullptr, size_of(d)), lane_count_, all);
}

}  // namespace ricci::cpu
