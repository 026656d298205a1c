// What is read across the order of memory, read in squares: as many neighbours in memory of as many
// columns as there are lanes, turned round between registers and kept for the rows that follow.
// Columns are walked in parts, so that what one square leaves of a cache line is still there for
// the square of the next rows.
#include <algorithm>

#include "backend/cpu/codegen/kernel_code.h"
#include "backend/cpu/codegen/kernel_emitter.h"

namespace ricci::cpu {

using llvm::BasicBlock;
using llvm::Value;

void KernelEmitter::emit_squares() {
  constexpr std::int64_t ColumnsAtATime = 64;
  const std::size_t across = k_.kept - 1;
  Value* columns = range_field(3);
  lane_count_ = lanes_for(k_, k_.stages.back(), target_);
  unroll_ = 1;
  indices_.assign(k_.extents.size(), nullptr);
  for (const Reg r : crossed_) {
    const Instr& i = k_.code[static_cast<std::size_t>(r)];
    llvm::IRBuilder<> top(&function_->getEntryBlock(), function_->getEntryBlock().begin());
    llvm::Type* line = lanes_.stored(i.dtype, lane_count_);
    squares_[&i.access] =
        top.CreateAlloca(llvm::ArrayType::get(line, static_cast<unsigned>(lane_count_)));
  }
  const auto least = [&](Value* a, Value* b) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  };
  Loop parts = open(range_field(2), columns, ColumnsAtATime, "part");
  Value* end = least(b_.CreateAdd(parts.index, number(ColumnsAtATime)), columns);
  in_groups(k_.extents[across], across, Groups::Any, [&](Value* row, Value* rows) {
    Loop squares = open(parts.index, end, lane_count_, "square");
    Value* left = least(b_.CreateSub(end, squares.index), number(lane_count_));
    emit_square({row, rows, squares.index, left});
    close(squares);
  });
  close(parts);
}

void KernelEmitter::emit_square(const Square& square) {
  for (const Reg r : crossed_) load_square(square, k_.code[static_cast<std::size_t>(r)]);
  mask_ = nullptr;
  if (k_.extents.back() % lane_count_ == 0) return emit_square_rows(square);
  BasicBlock* whole = block("whole");
  BasicBlock* part = block("part");
  BasicBlock* done = block("done");
  b_.CreateCondBr(b_.CreateICmpEQ(square.columns, number(lane_count_)), whole, part);
  for (BasicBlock* version : {whole, part}) {
    b_.SetInsertPoint(version);
    mask_ = version == whole ? nullptr : first_lanes(square.columns);
    emit_square_rows(square);
    b_.CreateBr(done);
  }
  mask_ = nullptr;
  b_.SetInsertPoint(done);
}

void KernelEmitter::load_square(const Square& square, const Instr& i) {
  const std::size_t last = k_.extents.size() - 1;
  const std::int64_t bytes = size_of(i.dtype);
  indices_[last - 1] = square.row;
  Value* mask = first_lanes(square.rows);
  Value* start = element(argument(i.access.argument), place(i.access, last), bytes);
  const std::int64_t stride = i.access.strides[last];
  Value* at = element(start, b_.CreateMul(square.column, number(stride)), bytes);
  std::vector<Value*> lines;
  for (int j = 0; j < lane_count_; ++j) {
    // A column beyond the last is read as that one, and used by nobody.
    if (j > 0) {
      Value* there = b_.CreateICmpSLT(number(j), square.columns);
      at = element(at, b_.CreateSelect(there, number(stride), number(0)), bytes);
    }
    lines.push_back(lanes_.load_stored(i.dtype, at, lane_count_, mask));
  }
  lines = transposed(b_, std::move(lines));
  for (std::size_t j = 0; j < lines.size(); ++j) {
    Value* line = number(static_cast<std::int64_t>(j) * lane_count_);
    lanes_.store_stored(i.dtype, lines[j], element(squares_.at(&i.access), line, bytes),
                        lane_count_, nullptr);
  }
}

void KernelEmitter::emit_square_rows(const Square& square) {
  const std::size_t last = k_.extents.size() - 1;
  const int lanes = lane_count_;
  Value* mask = mask_;
  Loop rows = open(number(0), square.rows, 1, "row");
  square_row_ = rows.index;
  indices_[last - 1] = b_.CreateAdd(square.row, rows.index);
  scalars_.clear();
  for (const Stage& stage : k_.stages) {
    if (!stage.per_element) emit_once(stage);
  }
  lane_count_ = lanes;
  mask_ = mask;
  bases_.clear();
  guards_.clear();
  splats_.clear();
  preheader_ = block("vectors");
  b_.CreateBr(preheader_);
  BasicBlock* start = block("start");
  b_.SetInsertPoint(start);
  const Stage& stage = k_.stages.back();
  inside_or_not(stage, last, square.column, lanes,
                [&] { emit_vector(stage, last, square.column, 0); });
  BasicBlock* end = b_.GetInsertBlock();
  b_.SetInsertPoint(preheader_);
  b_.CreateBr(start);
  b_.SetInsertPoint(end);
  close(rows);
}

}  // namespace ricci::cpu
