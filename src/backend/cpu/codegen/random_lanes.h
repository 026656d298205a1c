// Random numbers as LLVM values: words of Philox streams, and numbers made of them, the same bits
// as the reference's but for the last place of what is normal.
//
// A block of a stream has four words. Neighbouring elements share blocks where they lie in step
// with them, which is how arrays are walked; any other element finds its words alone.
#pragma once

#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "ricci/compiler/loop/kernel.h"

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/lanes.h"

namespace ricci::cpu {

class RandomLanes {
 public:
  RandomLanes(llvm::IRBuilder<>& builder, const TargetInfo& target, Lanes& lanes)
      : b_(builder), target_(target), lanes_(lanes) {}

  struct Stream {
    llvm::Value* seed = nullptr;  ///< i64
    llvm::Value* key = nullptr;   ///< i64
  };
  /// Elements first, first + stride, …, one a lane.
  struct Elements {
    llvm::Value* first = nullptr;  ///< i64
    std::int64_t stride = 0;
    int lanes = 1;
  };
  /// What the elements draw, as held. May split the block: go on from the builder's own.
  [[nodiscard]] llvm::Value* draw(const loop::Instr& instr, Stream stream, Elements elements);

 private:
  using Words = std::vector<llvm::Value*>;  ///< i32 lanes
  struct Key {
    llvm::Value* low = nullptr;  ///< i64 with 32 bits
    llvm::Value* high = nullptr;
  };

  [[nodiscard]] Key key_of(Stream stream);
  /// Word w of every element, for the `each` words it has: 1, 2 or 4.
  [[nodiscard]] Words words(Key key, Elements elements, int each);
  [[nodiscard]] Words words_alone(Key key, Elements elements, int each);
  [[nodiscard]] Words words_in_step(Key key, Elements elements, int each);
  /// The four words of blocks, in i64 lanes of which the lower halves count.
  [[nodiscard]] Words blocks(Key key, llvm::Value* counters);
  [[nodiscard]] llvm::Value* counted(llvm::Value* first, std::int64_t stride, int lanes);
  /// A number in [0, 1) of word `w`, or of that and the next where double has more bits.
  [[nodiscard]] llvm::Value* unit(const Words& words, std::size_t w, bool wide, llvm::Type* type);
  [[nodiscard]] llvm::Value* uniform(const loop::Instr& instr, const Words& words);
  [[nodiscard]] llvm::Value* normal(const loop::Instr& instr, const Words& words);
  /// Doubles as the dtype has them.
  [[nodiscard]] llvm::Value* as_drawn(llvm::Value* x, DType dtype);
  [[nodiscard]] llvm::Type* like(llvm::Value* shape, llvm::Type* element) const;

  llvm::IRBuilder<>& b_;
  const TargetInfo& target_;
  Lanes& lanes_;
};

}  // namespace ricci::cpu
