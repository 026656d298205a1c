// A kernel's function under construction: rows, then stages, then vectors along the last axis of
// the row. Rows and stages are in kernel_code.cpp, reading and writing in kernel_places.cpp. Short
// rows run side by side instead, one in each lane (kernel_short_rows.cpp), and what is read across
// the order of memory is read in squares (kernel_squares.cpp).
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Module.h>

#include "ricci/compiler/loop/kernel.h"

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/lanes.h"
#include "backend/cpu/codegen/shuffles.h"

namespace ricci::cpu {

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const loop::Kernel& kernel, const std::string& symbol,
                const TargetInfo& target);

  void run();

 private:
  using Access = loop::Access;
  using BasicBlock = llvm::BasicBlock;
  using Instr = loop::Instr;
  using Kernel = loop::Kernel;
  using Reg = loop::Reg;
  using Stage = loop::Stage;
  using Value = llvm::Value;

  // A counted loop under construction: `for (i = from; i < to; i += step)`.
  struct Loop {
    llvm::PHINode* index = nullptr;
    BasicBlock* header = nullptr;
    BasicBlock* exit = nullptr;
    Value* to = nullptr;
    std::int64_t step = 1;
  };

  // Small things.
  llvm::LLVMContext& context() { return module_.getContext(); }
  BasicBlock* block(const char* name) { return BasicBlock::Create(context(), name, function_); }
  template <std::integral N>
  Value* number(N v) {
    return b_.getInt64(static_cast<std::uint64_t>(v));
  }
  Value* element(Value* base, Value* index, std::int64_t bytes) {
    return b_.CreateGEP(b_.getInt8Ty(), base, b_.CreateMul(index, number(bytes)));
  }
  Value* range_field(std::int64_t i) {
    return b_.CreateLoad(b_.getInt64Ty(), element(function_->getArg(1), number(i), 8));
  }

  Loop open(Value* from, Value* to, std::int64_t step, const char* name);

  void close(const Loop& loop);

  // Rows.
  void emit_accumulated(Value* kept_row);

  std::int64_t length_of(const loop::Accumulator& acc) const {
    return acc.per_element ? k_.row_elements() : 1;
  }

  void fill_local(const loop::Accumulator& acc);

  // Has it room for the sums of blocks of rows beside that of the rows of one?
  bool in_blocks(const loop::Accumulator& acc) const {
    return k_.arguments[static_cast<std::size_t>(acc.local)].elements >= 2 * length_of(acc);
  }

  // The sum of the rows of a block goes to that of the blocks before, and is 0 again.
  void end_block(const loop::Accumulator& acc);

  void write_out(const loop::Accumulator& acc, Value* slot);

  Value* argument(std::int32_t a) { return arguments_[static_cast<std::size_t>(a)]; }

  void emit_row(Value* kept_row, Value* accumulated_row);

  // A row's number as the indices of axes [from, to).
  void split(Value* row, std::size_t from, std::size_t to);

  // Rows in groups of as many as there are lanes, or of fewer where `extent` rows or the range end.
  // `code(index, count)` has the number of the group's first among those of its axis, and how many
  // there are; with a version for whole groups, whose count is null. Axes before `axis` have their
  // indices.
  enum class Groups : std::uint8_t { Any, WholeAndOthers };
  template <class F>
  void in_groups(std::int64_t extent, std::size_t axis, Groups versions, F&& code);

  // Short rows.
  // Accesses that differ in where in the row they are, in one argument.
  struct RowAccess {
    std::int32_t argument = -1;
    std::vector<std::int64_t> strides;  ///< without those along the row
    auto operator<=>(const RowAccess&) const = default;
  };
  using RowPlace = std::pair<RowAccess, std::int64_t>;
  struct Span {
    std::int64_t low = 0;
    std::int64_t high = 0;  ///< the last one
    auto operator<=>(const Span&) const = default;
  };

  void emit_short_rows();
  void emit_group(Value* column);
  void emit_group_elements(const Stage& stage, Value* column);
  // Calls `f` for every element of a row, with its indices set.
  template <class F>
  void for_elements(F&& f);
  [[nodiscard]] RowPlace row_place(const Access& access) const;
  // Does a load read at this element of the row? Nothing where that depends on the row.
  [[nodiscard]] std::optional<bool> reads_here(const Access& access) const;
  void find_read_places();
  // The places beside this one that are read with it.
  [[nodiscard]] static Span span_of(const std::set<std::int64_t>& places, std::int64_t place,
                                    std::int64_t stride);
  // What an earlier stage left there, or what is read of a run of rows; null for any other load.
  Value* load_from_rows(const Instr& i, Value* column);
  void store_to_rows(const loop::Store& s, const Stage& stage, Value* column);
  [[nodiscard]] bool is_stored_later(const loop::Store& s, const Stage& stage) const;
  // Stores what a stage has for neighbouring places.
  void flush_stores(Value* column);

  // Squares.
  void find_crossed();
  void emit_squares();
  struct Square {
    Value* row = nullptr;      ///< its first, among those of the last kept axis
    Value* rows = nullptr;     ///< how many it has
    Value* column = nullptr;   ///< its first
    Value* columns = nullptr;  ///< how many it has
  };
  void emit_square(const Square& square);
  void load_square(const Square& square, const Instr& i);
  void emit_square_rows(const Square& square);

  // offset + Σ strides·index, for the axes before `axis`.
  Value* at_index(std::int64_t offset, const std::vector<std::int64_t>& strides, std::size_t axis);
  // The place of an access, in elements.
  Value* place(const Access& access, std::size_t axis) {
    return at_index(access.offset, access.strides, axis);
  }

  void emit_once(const Stage& stage);

  void accumulate(const loop::Accumulator& acc, Value* at, Value* value);

  void emit_elements(const Stage& stage);

  // Whole vectors, `unroll_` at a time; then what is left, one masked vector at a time.
  void emit_vectors(const Stage& stage, std::size_t axis);

  // 0, 1, 2, … in lanes of so many bits.
  Value* lane_numbers(unsigned bits);

  // Is it among the first `count` lanes?
  Value* first_lanes(Value* count);

  [[nodiscard]] bool has_guards(const Stage& stage) const;

  // What a guard is about, for the axes before `axis`; computed before the loop.
  Value* guard_start(const loop::Guard& guard, std::size_t axis);

  // Do all guards of a stage hold for `width` columns from this one on?
  Value* guards_hold(const Stage& stage, std::size_t axis, Value* column, std::int64_t width);

  // Code for `width` columns, in two versions where loads are guarded: most vectors are inside.
  template <class F>
  void inside_or_not(const Stage& stage, std::size_t axis, Value* column, std::int64_t width,
                     F&& code) {
    if (!has_guards(stage)) return code();
    BasicBlock* inside = block("inside");
    BasicBlock* border = block("border");
    BasicBlock* done = block("done");
    b_.CreateCondBr(guards_hold(stage, axis, column, width), inside, border);
    for (BasicBlock* version : {inside, border}) {
      b_.SetInsertPoint(version);
      is_inside_ = version == inside;
      code();
      b_.CreateBr(done);
    }
    b_.SetInsertPoint(done);
  }

  void emit_vector(const Stage& stage, std::size_t axis, Value* column, int unrolled);

  // Where the total of this column is kept.
  Value* total_place(const loop::Accumulator& acc, Value* column);
  Value* running(const Instr& i, Value* column);

  void reduce_into(const loop::Reduction& red, Value* slot);

  // A register's value in the current lanes.
  Value* value(Reg r);

  Value* spread_value(Reg r);

  Value* operand(const Instr& i, std::size_t k, Value* column) {
    return column == nullptr ? scalars_.at(i.in[k]) : spread_value(i.in[k]);
  }

  DType dtype_of(Reg r) const { return k_.code[static_cast<std::size_t>(r)].dtype; }

  // `column` is null for what runs once a row.
  Value* emit(const Instr& i, Value* column);

  Value* index_value(const Instr& i, Value* column);

  Value* random(const Instr& i, Value* column);
  // A value that is the same for all elements.
  Value* whole_number(Reg r);

  // The start of an access's run along the last axis, computed once before the loop.
  Value* run_start(const Access& access, std::size_t axis);

  // Which lanes of the current vector, or whether this row, the guards hold for.
  Value* holds(const Access& access, Value* column);

  // A load that reads only where its guards hold.
  Value* guarded_load(const Instr& i, Value* column);

  Value* load(const Instr& i, Value* column);

  // Elements a few places apart, from the address of lane 0 on.
  Value* narrow_load(DType dtype, Value* first, std::int64_t stride);
  std::vector<Value*> load_run(DType dtype, Value* start, const VectorRun& run);

  Value* addresses(Value* start, Value* column, std::int64_t stride, Value* more,
                   std::int64_t bytes);

  // What a term adds to a place. An index out of range is reported and read as 0.
  Value* moved(const loop::Term& t, Value* index);

  // Tells of the lowest lane that is bad.
  void report(loop::FaultKind kind, Value* bad, Value* numbers, std::int64_t limit);

  // Quotients, remainders and powers of integers.
  Value* checked_binary(const Instr& i, Value* column);
  Value* int_power(Value* base, Value* exponent);

  Value*& invariant(const Access* access) { return invariants_[{preheader_, access}]; }

  void store(const loop::Store& s, std::size_t axis, Value* column);

  llvm::Module& module_;
  const int short_rows_;  ///< lanes that rows run in, or 0
  const Kernel k_;
  llvm::IRBuilder<> b_;
  Lanes lanes_;
  const TargetInfo& target_;
  llvm::Function* function_ = nullptr;
  std::vector<Value*> arguments_;
  Value* first_ = nullptr;
  Value* last_ = nullptr;
  std::vector<Value*> indices_;    ///< of the axes, where they are known
  std::map<Reg, Value*> scalars_;  ///< values once a row
  std::map<Reg, Value*> vectors_;  ///< values of the current vector
  std::vector<Value*> reduced_;
  std::vector<std::vector<Value*>> partial_;  ///< per reduction of the stage and unrolled vector
  std::map<const Access*, Value*> bases_;
  std::map<const loop::Guard*, Value*> guards_;
  bool is_inside_ = true;  ///< all guards hold for this vector
  std::map<Reg, Value*> splats_;
  std::map<std::pair<BasicBlock*, const Access*>, Value*> invariants_;
  BasicBlock* preheader_ = nullptr;
  Value* mask_ = nullptr;
  int lane_count_ = 1;
  int unroll_ = 1;

  // Short rows.
  std::vector<std::int64_t> element_;  ///< where in the row code is made for, one index per axis
  std::map<Reg, Value*> row_values_;   ///< what is once a row, a lane each
  std::map<RowAccess, std::set<std::int64_t>> read_places_;
  std::map<std::tuple<RowAccess, Span, DType>, std::vector<Value*>> runs_;
  std::map<RowPlace, Value*> left_there_;
  std::map<RowAccess, std::map<std::int64_t, Value*>> to_store_;
  // Squares.
  std::vector<Reg> crossed_;
  std::map<const Access*, Value*> squares_;  ///< where a square is kept
  Value* square_row_ = nullptr;
};

template <class F>
void KernelEmitter::in_groups(std::int64_t extent, std::size_t axis, Groups versions, F&& code) {
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* header = block("groups");
  BasicBlock* body = block("group");
  BasicBlock* exit = block("groups");
  b_.CreateBr(header);
  b_.SetInsertPoint(header);
  llvm::PHINode* row = b_.CreatePHI(b_.getInt64Ty(), 3);
  row->addIncoming(first_, before);
  b_.CreateCondBr(b_.CreateICmpSLT(row, last_), body, exit);
  b_.SetInsertPoint(body);
  Value* index = row;
  if (axis > 0) {
    index = b_.CreateURem(row, number(extent));
    split(b_.CreateUDiv(row, number(extent)), 0, axis);
  }
  const auto least = [&](Value* a, Value* b) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
  };
  Value* left = least(b_.CreateSub(last_, row), b_.CreateSub(number(extent), index));
  const auto version = [&](Value* given, Value* count) {
    code(index, given);
    row->addIncoming(b_.CreateAdd(row, count), b_.GetInsertBlock());
    b_.CreateBr(header);
  };
  if (versions == Groups::Any) {
    Value* count = least(left, number(lane_count_));
    version(count, count);
  } else {
    BasicBlock* whole = block("whole");
    BasicBlock* part = block("part");
    b_.CreateCondBr(b_.CreateICmpSGE(left, number(lane_count_)), whole, part);
    b_.SetInsertPoint(whole);
    version(nullptr, number(lane_count_));
    b_.SetInsertPoint(part);
    version(left, left);
  }
  b_.SetInsertPoint(exit);
}

}  // namespace ricci::cpu
