// Element-wise functions as LLVM IR: inlined, on scalars or fixed vectors of float or double of any
// width, without a call of the C library. Special values are those of the reference evaluator
// (src/rule/unary.cpp, elementwise.cpp); how far the rest may be off is in docs/ACCURACY.md.
#pragma once

#include <memory>
#include <string>

#include "ricci/op/elementwise.h"
#include "ricci/type/dtype.h"

#include "backend/cpu/codegen/jit.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace ricci::cpu {

/// f(x) at the builder's insertion point. is_nan and is_finite give i1 lanes, all others lanes of
/// x's type. sin, cos, tan, pow and rem may split the block: go on from the builder's own.
[[nodiscard]] llvm::Value* emit_unary(llvm::IRBuilderBase& builder, UnaryKind kind, llvm::Value* x,
                                      const TargetInfo& target);

/// exp where x is known not to be positive: the same bits from fewer instructions.
[[nodiscard]] llvm::Value* emit_exp_not_positive(llvm::IRBuilderBase& builder, llvm::Value* x,
                                                 const TargetInfo& target);

/// f(a, b) for the kinds that are defined on floats; a and b have one type.
[[nodiscard]] llvm::Value* emit_binary(llvm::IRBuilderBase& builder, BinaryKind kind,
                                       llvm::Value* a, llvm::Value* b, const TargetInfo& target);

/// A loop that applies one function to arrays, `lanes` elements at a time (1: scalar code):
/// `void map(const T* a, const T* b, R* out, int64 n)` with n a multiple of `lanes`; b is not read
/// by functions of one operand, and R is a byte for is_nan and is_finite. For tests and
/// measurements: it shows a function alone.
struct MapKernel {
  std::string name;          ///< a unary or binary kind's, or exp_not_positive
  DType dtype = DType::F32;  ///< F32 or F64
  int lanes = 1;
};

/// That loop, compiled for running here.
[[nodiscard]] std::shared_ptr<JitCode> jit_map(const MapKernel& kernel, const JitOptions& options);
/// That loop, compiled only.
[[nodiscard]] EmittedCode emit_map(const MapKernel& kernel, const JitOptions& options);

}  // namespace ricci::cpu
