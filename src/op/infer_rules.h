// The type rule of every op, declared from the list; each is defined in its family's file. An op
// without one does not link.
#pragma once

#include "ricci/op/elementwise.h"
#include "ricci/op/infer.h"

namespace ricci {

#define RICCI_OP(Type, builder) Inferred infer(const op::Type& op, const InferContext& in);
#include "ricci/op/list.def"

// Checks shared by type rules.

/// Rejects `label` unless all operands in [first, last) have one dtype, a member of `allowed`.
void require_dtypes(const InferContext& in, std::string_view label, std::size_t first,
                    std::size_t last, DTypeSet allowed);
/// The broadcast of two shapes; rejects `label` when they clash.
[[nodiscard]] Dims require_broadcast(const InferContext& in, std::string_view label, const Dims& a,
                                     const Dims& b);
/// Rejects `label` when a static dimension is negative.
void require_non_negative(const InferContext& in, std::string_view label, const Dims& dims);
/// ⌊a / b⌋ where every symbol's coefficient is a multiple of b, so that only the constant is
/// rounded; nothing otherwise.
[[nodiscard]] std::optional<Dim> floor_divide(const Dim& a, std::int64_t b);
/// Rejects `label` unless the function takes operand 0's dtype and gives it.
void require_activation(const InferContext& in, std::string_view label, UnaryKind kind);
/// A float dtype, but at least f32: what row statistics and recurrent states are kept in.
[[nodiscard]] constexpr DType at_least_f32(DType d) {
  return d == DType::F64 ? DType::F64 : DType::F32;
}
/// Names the operand for a message: `'gamma' (f32[4])`.
[[nodiscard]] std::string operand_text(const InferContext& in, const OpInfo& info, std::size_t k);

}  // namespace ricci
