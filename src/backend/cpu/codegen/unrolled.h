// Items of a small graph as straight-line code: no loops, every vector written out. Arrays are
// stack slots that LLVM turns into registers.
#pragma once

#include <map>
#include <vector>

#include <llvm/IR/IRBuilder.h>

#include "backend/cpu/codegen/lanes.h"
#include "schedule/items.h"

namespace ricci::cpu {

/// Can every item be written out, within a budget of vector instructions?
[[nodiscard]] bool can_unroll(const schedule::Items& items, const Graph& graph,
                              const TargetInfo& target);

class Unrolled {
 public:
  Unrolled(llvm::IRBuilder<>& builder, const TargetInfo& target, const schedule::Items& items,
           const Graph& graph)
      : b_(builder), lanes_(builder, target), target_(target), items_(items), graph_(graph) {}

  /// Where each storage's elements are; set before `emit`.
  void place(schedule::StorageId storage, llvm::Value* at) { places_[storage] = at; }
  [[nodiscard]] llvm::Value* place_of(schedule::StorageId storage) const {
    return places_.at(storage);
  }
  /// An array on the stack for a storage.
  [[nodiscard]] llvm::Value* slot(schedule::StorageId storage);
  /// All items, in order.
  void emit();
  /// Copies the elements of a storage from one place to another.
  void copy(schedule::StorageId storage, llvm::Value* from, llvm::Value* to);
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
  llvm::Value* read(const schedule::Seen& seen, const StaticDims& index, std::int64_t first,
                    int lanes, DType dtype);
  llvm::Value* whole_number(DType dtype, std::int64_t n);
  llvm::Value* multiply_add(llvm::Value* x, llvm::Value* y, llvm::Value* sum);
  void emit_pointwise(const schedule::Item& item);
  void emit_reduction(const schedule::Item& item);
  void emit_matmul(const schedule::Item& item);
  llvm::Value* compute(const schedule::Item& item, const std::vector<llvm::Value*>& in,
                       const std::vector<DType>& dtypes);
  [[nodiscard]] DType dtype_of(const schedule::Seen& seen) const;
  [[nodiscard]] bool against_the_grain(const schedule::Item& item) const;

  llvm::IRBuilder<>& b_;
  Lanes lanes_;
  const TargetInfo& target_;
  const schedule::Items& items_;
  const Graph& graph_;
  std::map<schedule::StorageId, llvm::Value*> places_;
  std::map<const schedule::Item*, llvm::Value*> packed_;  ///< right sides of products, row-major
};

}  // namespace ricci::cpu
