// The lowering rules of primitive and structured ops, and of few others; each is in the file of its
// family.
#pragma once

#include "ricci/compiler/rule/lower.h"
#include "ricci/op/ops.h"

namespace ricci::rule {

#define RICCI_OP(Type, builder)
#define RICCI_PRIMITIVE(Type, builder) Lowering lower(const op::Type&, const LowerContext&);
#define RICCI_PRIMITIVE_FAMILY RICCI_PRIMITIVE
#define RICCI_STRUCTURED RICCI_PRIMITIVE
#define RICCI_STRUCTURED_FAMILY RICCI_PRIMITIVE
#include "ricci/op/list.def"

/// A call of a role.
[[nodiscard]] inline Lowering as_call(loop::Call call) {
  Lowering l;
  l.call = std::move(call);
  return l;
}

/// Composites that loops say better than their expansion does.
Lowering lower(const op::CumsumBackward&, const LowerContext&);

/// Broadcasting, right-aligned.
[[nodiscard]] AxisMap aligned_axes(const StaticDims& from, const StaticDims& to);
/// An instruction per element, every operand broadcast to the result.
[[nodiscard]] Lowering pointwise(loop::Instr instr, const LowerContext& c);

}  // namespace ricci::rule
