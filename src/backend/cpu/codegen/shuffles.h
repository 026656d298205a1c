// Lanes put in another order: what is read a few elements apart, or across the order of memory, is
// read as whole vectors and sorted out between registers.
#pragma once

#include <cstdint>
#include <vector>

#include <llvm/IR/IRBuilder.h>

namespace ricci::cpu {

/// A run of elements in memory as whole vectors of `lanes`: the last one ends where the run does.
struct VectorRun {
  std::int64_t length = 0;  ///< at least `lanes`
  int lanes = 1;

  [[nodiscard]] int count() const;
  /// Where a vector begins.
  [[nodiscard]] std::int64_t start(int vector) const;
  /// The vector an element is taken from.
  [[nodiscard]] int vector_of(std::int64_t element) const;
};

/// Element `positions[l]` of the run in lane l; a negative position is any.
[[nodiscard]] llvm::Value* picked(llvm::IRBuilder<>& b, const VectorRun& run,
                                  const std::vector<llvm::Value*>& vectors,
                                  const std::vector<std::int64_t>& positions);

/// Lane j of result i is lane i of `vectors[j]`: as many vectors as lanes, a power of two.
[[nodiscard]] std::vector<llvm::Value*> transposed(llvm::IRBuilder<>& b,
                                                   std::vector<llvm::Value*> vectors);

}  // namespace ricci::cpu
