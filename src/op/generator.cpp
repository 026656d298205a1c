#include "ricci/op/generator.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

void require_key_operand(const InferContext& in, std::string_view label, std::size_t k) {
  if (k >= in.operands.size()) return;
  if (is_int(in[k].dtype) && in[k].dims.empty()) return;
  in.reject(label,
            fmt::format("the key operand is {}, not an integer of rank 0", in[k].to_string()));
}

// rng_normal and rng_uniform: where shape and dtype come from.
template <class Random>
Type infer_draw(const Random& op, const InferContext& in) {
  const bool has_template = !op.shape && !in.operands.empty();
  const DType dtype = op.dtype.value_or(has_template ? in[0].dtype : DType::F32);
  if (!is_float(dtype)) {
    in.reject("c1", fmt::format("random numbers cannot be {}", name(dtype)), "give a float dtype");
  }
  if (!op.shape && in.operands.empty()) {
    in.reject("c2", "there is neither a shape nor a template", "add {shape = […]}");
  }
  if (op.shape && in.operands.size() > 1) {
    in.reject("c2", "both a shape and a template are given",
              "with shape, the only operand is the key operand");
  }
  if (op.shape) require_non_negative(in, "c3", *op.shape);
  require_key_operand(in, "c4", has_template ? 1 : 0);
  return {dtype, op.shape ? *op.shape : in[0].dims};
}

}  // namespace

Inferred infer(const op::Iota& op, const InferContext& in) {
  if (op.dtype == DType::Bool) in.reject("c1", "'iota' cannot count in bool", "use i32");
  require_non_negative(in, "c2", op.shape);
  return Type{op.dtype, op.shape};
}

Inferred infer(const op::DimSize& op, const InferContext& in) {
  if (!is_float(op.dtype) && !is_int(op.dtype)) {
    in.reject("c1", fmt::format("a size cannot be {}", name(op.dtype)), "use i64 or a float");
  }
  require_non_negative(in, "c2", {op.dim});
  return Type{op.dtype, {}};
}

Inferred infer(const op::RngNormal& op, const InferContext& in) { return infer_draw(op, in); }
Inferred infer(const op::RngUniform& op, const InferContext& in) { return infer_draw(op, in); }

Inferred infer(const op::RngBits& op, const InferContext& in) {
  require_non_negative(in, "c1", op.shape);
  require_key_operand(in, "c2", 0);
  return Type{DType::U32, op.shape};
}

}  // namespace ricci
