// The body of a written-out loop as straight-line code: no loops, every vector written out. Arrays
// are stack slots that LLVM turns into registers.
#pragma once

#include <map>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "ricci/compiler/loop/written_loop.h"

#include "backend/cpu/codegen/lanes.h"

namespace ricci::cpu {

class Unrolled {
 public:
  Unrolled(llvm::IRBuilder<>& builder, const TargetInfo& target, const loop::WrittenBody& body)
      : b_(builder), lanes_(builder, target), target_(target), body_(body) {}

  /// Where each storage's elements are; set before `emit`.
  void place(loop::StorageId storage, llvm::Value* at) { places_[storage] = at; }
  [[nodiscard]] llvm::Value* place_of(loop::StorageId storage) const { return places_.at(storage); }
  /// An array on the stack for a storage.
  [[nodiscard]] llvm::Value* slot(loop::StorageId storage);
  /// All items, in order.
  void emit();
  /// Copies the elements of a storage from one place to another.
  void copy(loop::StorageId storage, llvm::Value* from, llvm::Value* to);
  /// Is every element of a storage something else than 0? An i1.
  [[nodiscard]] llvm::Value* all_nonzero(loop::StorageId storage);
  /// Packs what matrix products read against the grain; `invariant` storages do not change.
  void pack_invariants(const std::vector<bool>& invariant);

 private:
  struct Piece {
    std::int64_t first = 0;
    int lanes = 1;
  };
  [[nodiscard]] std::vector<Piece> pieces(std::int64_t n, DType dtype) const;
  [[nodiscard]] int most_lanes(DType dtype) const;
  llvm::Value* at(llvm::Value* base, std::int64_t element, DType dtype);
  llvm::Value* read(const loop::Read& from, const StaticDims& index, std::int64_t first, int lanes,
                    DType dtype);
  llvm::Value* whole_number(DType dtype, std::int64_t n);
  llvm::Value* multiply_add(llvm::Value* x, llvm::Value* y, llvm::Value* sum);
  void emit_pointwise(const loop::WrittenItem& item);
  void emit_reduction(const loop::WrittenItem& item);
  void emit_matmul(const loop::WrittenItem& item);
  llvm::Value* compute(const loop::WrittenItem& item, const std::vector<llvm::Value*>& in,
                       const std::vector<DType>& dtypes);
  [[nodiscard]] bool against_the_grain(const loop::WrittenItem& item) const;

  llvm::IRBuilder<>& b_;
  Lanes lanes_;
  const TargetInfo& target_;
  const loop::WrittenBody& body_;
  std::map<loop::StorageId, llvm::Value*> places_;
  std::map<const loop::WrittenItem*, llvm::Value*> packed_;  ///< right sides of products, row-major
};

}  // namespace ricci::cpu
