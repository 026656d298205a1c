#include "ricci/op/fused.h"

#include <fmt/format.h>

#include "ricci/op/linalg.h"

#include "op/fused_checks.h"
#include "op/fused_operands.h"
#include "op/infer_rules.h"

namespace ricci {

void require_dims(const InferContext& in, std::string_view label, std::size_t k,
                  std::string_view operand, const Dims& expected) {
  if (k == Absent || in[k].dims == expected) return;
  in.reject(label, fmt::format("'{}' is {}, but must be {}", operand, in[k].to_string(),
                               to_string(expected)));
}

void require_mask(const InferContext& in, std::string_view label, const op::Attention& attention,
                  std::size_t mask) {
  Type q = in[0];
  q.dims.back() = Dim(attention.num_heads) * attention.head_dim;
  Type k = in[0];
  k.dims.back() = Dim(attention.num_kv_heads.value_or(attention.num_heads)) * attention.head_dim;
  std::vector<Type> types = {q, k, k};
  if (mask != Absent) types.push_back(in[mask]);
  const Op inner(attention);
  try {
    (void)infer(attention, InferContext(inner, types, {}, in.registry));
  } catch (const Rejection& r) {
    in.reject(label, r.message, r.help);
  }
}

void require_tables(const InferContext& in, std::string_view label, std::size_t cos,
                    std::size_t sin, const Dim& steps, std::int64_t head_dim) {
  const Type& table = in[cos];
  const Dim rows = table.rank() == 2 ? table.dims[0] : Dim(0);
  require_dims(in, label, cos, "cos", {rows, head_dim / 2});
  require_dims(in, label, sin, "sin", table.dims);
  const auto spare = (rows - steps).try_value();
  if (head_dim % 2 != 0 || (spare && *spare < 0)) {
    in.reject(label, fmt::format("tables of {} rows do not rotate {} steps of heads of width {}",
                                 rows.to_string(), steps.to_string(), head_dim));
  }
}

namespace {

void require_count(const InferContext& in, std::string_view label, std::size_t count) {
  if (in.operands.size() == count) return;
  in.reject(label, fmt::format("{} operands are given, but these attributes ask for {}",
                               in.operands.size(), count));
}

// All operands have the dtype of the first, but for a mask that only says yes or no.
void require_block_dtypes(const InferContext& in, std::string_view label, const MaskKind& kind,
                          std::size_t mask) {
  if (!dtypes::floats.has(in[0].dtype)) {
    in.reject(label, fmt::format("{} operands are not allowed here", name(in[0].dtype)));
  }
  for (std::size_t k = 1; k < in.operands.size(); ++k) {
    if (k == mask && kind.kind == MaskKind::Kind::Custom) continue;
    if (in[k].dtype == in[0].dtype) continue;
    in.reject(label, fmt::format("hidden is {}, but operand {} is {}", name(in[0].dtype), k,
                                 name(in[k].dtype)));
  }
}

void require_hidden(const InferContext& in, std::string_view label) {
  if (in[0].rank() == 2 || in[0].rank() == 3) return;
  in.reject(label, fmt::format("'hidden' is {}, but must have rank 2 or 3", in[0].to_string()));
}

void require_attention_attrs(const InferContext& in, std::string_view label, const auto& op) {
  const bool capped_well = !op.attn_logit_softcap || *op.attn_logit_softcap > 0;
  if (op.num_heads >= 1 && op.head_dim >= 1 && capped_well && op.mask_kind.window >= 0) return;
  in.reject(label, fmt::format("{} heads of width {}, the softcap and the window must make sense",
                               op.num_heads, op.head_dim));
}

// The two residual norms have one set of constraints.
Inferred infer_residual_norm(const InferContext& in, bool has_bias, double eps) {
  require_count(in, "c1", has_bias ? 5 : 4);
  require_dtypes(in, "c2", 0, in.operands.size(), dtypes::floats);
  if (in[0].rank() < 1 || in[1].dims != in[0].dims) {
    in.reject("c3", fmt::format("x {} and the residual {} must have one shape, of rank 1 or more",
                                in[0].to_string(), in[1].to_string()));
  }
  for (std::size_t k = 2; k < in.operands.size(); ++k) {
    require_dims(in, "c4", k, k == 2 && has_bias ? "bias" : "gamma, beta", {in[0].dims.back()});
  }
  if (!(eps >= 0)) in.reject("c5", fmt::format("eps is {}, but must not be negative", eps));
  return std::vector<Type>{in[0], in[0]};
}

}  // namespace

Inferred infer(const op::FusedMatmulBiasAct& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 3, dtypes::floats);
  Type out;
  try {
    const Op inner{op::Matmul{}};
    out = infer(op::Matmul{}, InferContext(inner, in.operands.first(2), {}, in.registry)).types[0];
  } catch (const Rejection& r) {
    in.reject("c2", r.message, r.help);
  }
  require_dims(in, "c3", 2, "bias", {out.dims.back()});
  if (op.activation) require_activation(in, "c4", *op.activation);
  return out;
}

Inferred infer(const op::FusedResidualLn& op, const InferContext& in) {
  return infer_residual_norm(in, op.has_bias, op.eps);
}
Inferred infer(const op::FusedResidualRmsNorm& op, const InferContext& in) {
  return infer_residual_norm(in, op.has_bias, op.eps);
}

Inferred infer(const op::FusedSwiglu& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, dtypes::floats);
  Type out = in[0];
  const auto half = out.dims.empty() ? std::nullopt : Dim::divide(out.dims.back(), 2);
  if (!half) {
    in.reject("c2", fmt::format("{} has no last axis of an even size", in[0].to_string()),
              "it holds two halves of one size; write a symbolic size as 2*n");
  }
  out.dims.back() = *half;
  out.dtype = op.cast_to.value_or(out.dtype);
  if (!dtypes::floats.has(out.dtype)) {
    in.reject("c3", fmt::format("the result cannot be {}", name(out.dtype)),
              "cast it with a node of its own");
  }
  return out;
}

Inferred infer(const op::FusedAttentionBlock& op, const InferContext& in) {
  require_attention_attrs(in, "c1", op);
  const AttentionBlockOperands at(op);
  require_count(in, "c2", at.count);
  require_block_dtypes(in, "c3", op.mask_kind, at.mask);
  require_hidden(in, "c4");
  const Dim inner = Dim(op.num_heads) * op.head_dim;
  require_dims(in, "c4", at.qkv_w, "qkv_w", {in[0].dims.back(), inner * 3});
  const Type& out_w = in[at.out_w];
  const Dim width = out_w.rank() == 2 ? out_w.dims[1] : Dim(1);
  require_dims(in, "c4", at.out_w, "out_w", {inner, width});
  require_dims(in, "c5", at.qkv_b, "qkv_b", {inner * 3});
  require_dims(in, "c5", at.out_b, "out_b", {width});
  if (op.has_rope) {
    const Dim& steps = in[0].dims[in[0].rank() - 2];
    require_tables(in, "c6", at.rope_cos, at.rope_sin, steps, op.head_dim);
  }
  require_mask(in, "c7", inner_attention(op), at.mask);
  Type out = in[0];
  out.dims.back() = width;
  return out;
}

Inferred infer(const op::FusedTransformerLayer& op, const InferContext& in) {
  require_attention_attrs(in, "c1", op);
  if (!(op.eps1 >= 0) || !(op.eps2 >= 0)) {
    in.reject("c1", fmt::format("eps1 is {} and eps2 {}, but neither may be negative",
                                op.eps1.value, op.eps2.value));
  }
  const TransformerLayerOperands at(op);
  require_count(in, "c2", at.count);
  require_block_dtypes(in, "c3", op.mask_kind, at.mask);
  require_hidden(in, "c4");
  const Dim width = in[0].dims.back();
  const Dim inner = Dim(op.num_heads) * op.head_dim;
  require_dims(in, "c4", at.qkv.w, "qkv_w", {width, inner * 3});
  require_dims(in, "c4", at.out.w, "out_w", {inner, width});
  require_dims(in, "c4", at.fc1.w, "fc1_w", {width, op.intermediate_size});
  require_dims(in, "c4", at.fc2.w, "fc2_w", {op.intermediate_size, width});
  require_dims(in, "c5", at.qkv.b, "qkv_b", {inner * 3});
  require_dims(in, "c5", at.out.b, "out_b", {width});
  require_dims(in, "c5", at.fc1.b, "fc1_b", {op.intermediate_size});
  require_dims(in, "c5", at.fc2.b, "fc2_b", {width});
  require_dims(in, "c5", at.ln1.w, "ln1_g", {width});
  require_dims(in, "c5", at.ln1.b, "ln1_b", {width});
  require_dims(in, "c5", at.ln2.w, "ln2_g", {width});
  require_dims(in, "c5", at.ln2.b, "ln2_b", {width});
  require_mask(in, "c6", inner_attention(op), at.mask);
  require_activation(in, "c7", op.activation);
  return in[0];
}

}  // namespace ricci
