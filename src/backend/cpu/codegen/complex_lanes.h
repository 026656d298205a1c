// Complex numbers as LLVM values: an integer a lane, the real part in its low half, which is how
// memory has them. They are computed with as twice as many floats.
//
// Sums and products have the bits of the reference on every target. Products are made in double,
// where those of floats are exact, and never with fused additions; where a part comes out as NaN,
// they recover infinities as C's Annex G says. Quotients and functions are in
// complex_functions.cpp, formulas made of them in complex_formulas.cpp.
#pragma once

#include <complex>

#include <llvm/IR/IRBuilder.h>

#include "ricci/op/elementwise.h"
#include "ricci/type/dtype.h"

#include "backend/cpu/codegen/jit.h"

namespace ricci::cpu {

class ComplexLanes {
 public:
  ComplexLanes(llvm::IRBuilder<>& builder, const TargetInfo& target)
      : b_(builder), target_(target) {}

  /// One number as a scalar.
  [[nodiscard]] llvm::Value* constant(DType dtype, std::complex<double> value) const;

  [[nodiscard]] llvm::Value* unary(UnaryKind kind, llvm::Value* x);
  /// Both may split the block: go on from the builder's own.
  [[nodiscard]] llvm::Value* binary(BinaryKind kind, llvm::Value* x, llvm::Value* y);
  [[nodiscard]] llvm::Value* compare(CompareKind kind, llvm::Value* x, llvm::Value* y);

  [[nodiscard]] llvm::Value* cast(llvm::Value* x, DType to);  ///< to another complex dtype
  [[nodiscard]] llvm::Value* real_part(llvm::Value* x);       ///< float or double lanes
  [[nodiscard]] llvm::Value* from_real(llvm::Value* x);       ///< of float or double lanes
  [[nodiscard]] llvm::Value* from_parts(llvm::Value* real, llvm::Value* imaginary);  ///< of such

  /// Both parts of every number as lanes of their own, and back.
  [[nodiscard]] llvm::Value* floats(llvm::Value* x);
  [[nodiscard]] llvm::Value* numbers(llvm::Value* floats);

 private:
  [[nodiscard]] llvm::Value* conjugate(llvm::Value* x);
  [[nodiscard]] llvm::Value* product(llvm::Value* x, llvm::Value* y);

  /// Doubles, one a lane.
  struct Parts {
    llvm::Value* real = nullptr;
    llvm::Value* imaginary = nullptr;
  };
  [[nodiscard]] Parts parts(llvm::Value* x);
  [[nodiscard]] llvm::Value* woven(Parts z, llvm::Type* like);  ///< as numbers of a type
  [[nodiscard]] llvm::Value* imaginary_part(llvm::Value* x);
  [[nodiscard]] llvm::Value* modulus(llvm::Value* x);
  [[nodiscard]] llvm::Value* any_part(UnaryKind test, llvm::Value* x);
  /// Wide: of c128, whose parts may be at the ends of their range.
  [[nodiscard]] Parts quotient(Parts n, Parts d, bool wide);
  [[nodiscard]] Parts recovered(Parts quotient, Parts top, Parts bottom);
  [[nodiscard]] Parts exponential(Parts z);
  [[nodiscard]] Parts logarithm(Parts z);
  [[nodiscard]] Parts root(Parts z);
  [[nodiscard]] Parts power(Parts a, Parts b);
  /// The functions of one number that are formulas of those above and of real functions.
  [[nodiscard]] Parts function(UnaryKind kind, Parts z, bool wide);

  llvm::IRBuilder<>& b_;
  const TargetInfo& target_;
};

}  // namespace ricci::cpu
