// Numbers of a dtype as LLVM values: how they are held while computing, loaded, stored, converted
// and combined. One lane is a scalar; several are a vector.
//
// f16 and bf16 are held as float, already rounded; bool as i1; complex numbers as integers that
// have both parts.
#pragma once

#include <complex>

#include <llvm/IR/IRBuilder.h>

#include "ricci/compiler/loop/kernel.h"
#include "ricci/op/elementwise.h"
#include "ricci/op/reduce.h"
#include "ricci/type/dtype.h"

#include "backend/cpu/codegen/complex_lanes.h"
#include "backend/cpu/codegen/jit.h"

namespace ricci::cpu {

class Lanes {
 public:
  Lanes(llvm::IRBuilder<>& builder, const TargetInfo& target)
      : b_(builder), target_(target), complex_(builder, target) {}

  [[nodiscard]] llvm::Type* held(DType dtype, int lanes) const;    ///< while computing
  [[nodiscard]] llvm::Type* stored(DType dtype, int lanes) const;  ///< in memory

  [[nodiscard]] llvm::Value* constant(DType dtype, double value, int lanes) const;
  [[nodiscard]] llvm::Value* constant(DType dtype, std::int64_t value, int lanes) const;
  [[nodiscard]] llvm::Value* constant(DType dtype, std::complex<double> value, int lanes) const;
  /// A scalar in every lane; values that have lanes already stay.
  [[nodiscard]] llvm::Value* spread(llvm::Value* value, int lanes) const;

  /// From memory as held, and back. `mask` (i1 lanes) may be null.
  [[nodiscard]] llvm::Value* load(DType dtype, llvm::Value* at, int lanes, llvm::Value* mask);
  void store(DType dtype, llvm::Value* value, llvm::Value* at, int lanes, llvm::Value* mask);
  /// What lies in memory as it is held, and back.
  [[nodiscard]] llvm::Value* from_stored(llvm::Value* x, DType dtype);
  [[nodiscard]] llvm::Value* to_stored(llvm::Value* x, DType dtype);
  /// A vector as it lies in memory.
  [[nodiscard]] llvm::Value* load_stored(DType dtype, llvm::Value* at, int lanes,
                                         llvm::Value* mask);
  void store_stored(DType dtype, llvm::Value* stored, llvm::Value* at, int lanes,
                    llvm::Value* mask);
  /// One element per lane, each at its own address.
  [[nodiscard]] llvm::Value* gather(DType dtype, llvm::Value* addresses, int lanes,
                                    llvm::Value* mask);
  void scatter(DType dtype, llvm::Value* value, llvm::Value* addresses, int lanes,
               llvm::Value* mask);

  [[nodiscard]] llvm::Value* unary(const loop::Instr& instr, DType dtype, llvm::Value* x);
  [[nodiscard]] llvm::Value* binary(BinaryKind kind, DType dtype, llvm::Value* a, llvm::Value* b);
  [[nodiscard]] llvm::Value* compare(CompareKind kind, DType dtype, llvm::Value* a, llvm::Value* b);
  [[nodiscard]] llvm::Value* cast(llvm::Value* x, DType from, DType to);
  [[nodiscard]] llvm::Value* nonzero(llvm::Value* x, DType dtype);
  /// Rounds what is held as float to a smaller dtype; others stay.
  [[nodiscard]] llvm::Value* rounded(llvm::Value* x, DType dtype);

  /// What a reduction starts from, and a step of it.
  [[nodiscard]] llvm::Value* identity(ReduceKind kind, DType dtype, int lanes);
  [[nodiscard]] llvm::Value* combine(ReduceKind kind, DType dtype, llvm::Value* a, llvm::Value* b);
  /// Partial results wait in a place of the stack, in the form they are combined in: as that, the
  /// place becomes a register.
  [[nodiscard]] llvm::Type* waiting(DType dtype, int lanes) const;
  void keep(DType dtype, llvm::Value* value, llvm::Value* place);
  [[nodiscard]] llvm::Value* kept(DType dtype, llvm::Value* place, int lanes);
  /// All lanes combined in a tree.
  [[nodiscard]] llvm::Value* across(ReduceKind kind, DType dtype, llvm::Value* x);

 private:
  [[nodiscard]] llvm::Value* half_to_float(llvm::Value* bits);
  [[nodiscard]] llvm::Value* float_to_half(llvm::Value* x);
  [[nodiscard]] llvm::Value* float_to_bfloat(llvm::Value* x);
  [[nodiscard]] llvm::Value* double_to_float_odd(llvm::Value* x);
  [[nodiscard]] llvm::Value* float_to_int(llvm::Value* x, DType to);
  [[nodiscard]] llvm::Value* int_unary(UnaryKind kind, DType dtype, llvm::Value* x);
  [[nodiscard]] llvm::Value* int_binary(BinaryKind kind, DType dtype, llvm::Value* a,
                                        llvm::Value* b);
  [[nodiscard]] llvm::Value* complex_cast(llvm::Value* x, DType from, DType to);
  [[nodiscard]] llvm::Type* like(llvm::Value* shape, llvm::Type* element) const;

  llvm::IRBuilder<>& b_;
  const TargetInfo& target_;
  ComplexLanes complex_;
};

/// How many lanes a value has; 1 for a scalar.
[[nodiscard]] int lanes_of(llvm::Value* value);

}  // namespace ricci::cpu
