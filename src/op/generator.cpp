#include "ricci/op/generator.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {

Inferred infer(const op::Iota& op, const InferContext& in) {
  if (op.dtype == DType::Bool) in.reject("c1", "'iota' cannot count in bool", "use i32");
  require_non_negative(in, "c2", op.shape);
  return Type{op.dtype, op.shape};
}

}  // namespace ricci
