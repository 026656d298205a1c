// Fused ops written out in the ops they stand for.
#include "ricci/build/build.h"
#include "ricci/op/fused.h"

#include "op/fused_operands.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

// x·w + b, where an absent bias is invalid
Value affine(Value x, Value w, Value b) {
  const Value product = matmul(x, w);
  return b.valid() ? product + b : product;
}

Value optional_operand(const ExpandContext& c, std::size_t k) {
  return k == Absent ? Value() : c[k];
}

Value last_columns(Value x, Dim start, Dim len) {
  return narrow(x, {.axis = static_cast<std::int64_t>(x.rank()) - 1,
                    .start = std::move(start),
                    .len = std::move(len)});
}

// Attention over the thirds q, k and v of `qkv`; tables that are not valid rotate nothing.
Value self_attention(const op::Attention& op, Value qkv, Value mask, Value rope_cos = {},
                     Value rope_sin = {}) {
  const std::int64_t width = op.num_heads * op.head_dim;
  Value q = last_columns(qkv, 0, width);
  Value k = last_columns(qkv, width, width);
  const Value v = last_columns(qkv, 2 * width, width);
  if (rope_cos.valid()) {
    q = rope(q, rope_cos, rope_sin, {.head_dim = op.head_dim});
    k = rope(k, rope_cos, rope_sin, {.head_dim = op.head_dim});
  }
  return mask.valid() ? attention(q, k, v, mask, op) : attention(q, k, v, op);
}

// What both residual norms normalise, and where gamma is.
struct ResidualSum {
  Value total;
  std::size_t gamma;
};
ResidualSum residual_sum(const ExpandContext& c, bool has_bias) {
  const Value total = c[0] + c[1];
  return has_bias ? ResidualSum{total + c[2], 3} : ResidualSum{total, 2};
}

}  // namespace

std::vector<Value> expand(const op::FusedMatmulBiasAct& op, const ExpandContext& c) {
  const Value y = affine(c[0], c[1], c[2]);
  return {op.activation ? activation(*op.activation, y) : y};
}

std::vector<Value> expand(const op::FusedResidualLn& op, const ExpandContext& c) {
  const auto [total, gamma] = residual_sum(c, op.has_bias);
  return {c.wanted(0) ? layer_norm(total, c[gamma], c[gamma + 1], {.eps = op.eps}) : Value(),
          c.wanted(1) ? total : Value()};
}

std::vector<Value> expand(const op::FusedResidualRmsNorm& op, const ExpandContext& c) {
  const auto [total, gamma] = residual_sum(c, op.has_bias);
  return {c.wanted(0) ? rms_norm(total, c[gamma], c[gamma + 1], {.eps = op.eps}) : Value(),
          c.wanted(1) ? total : Value()};
}

// [swiglu-gate-first]: the halves change places, and nothing else does.
std::vector<Value> expand(const op::FusedSwiglu& op, const ExpandContext& c) {
  const Dim half = c.node.types[0].dims.back();
  const Value packed = cast_to(c[0], promote(c[0].dtype(), op.cast_to.value_or(c[0].dtype())));
  const Value first = last_columns(packed, 0, half);
  const Value second = last_columns(packed, half, half);
  return {op.gate_first ? silu(first) * second : first * silu(second)};
}

std::vector<Value> expand(const op::FusedAttentionBlock& op, const ExpandContext& c) {
  const AttentionBlockOperands at(op);
  const Value qkv = affine(c[at.hidden], c[at.qkv_w], optional_operand(c, at.qkv_b));
  const Value heads =
      self_attention(inner_attention(op), qkv, optional_operand(c, at.mask),
                     optional_operand(c, at.rope_cos), optional_operand(c, at.rope_sin));
  return {affine(heads, c[at.out_w], optional_operand(c, at.out_b))};
}

std::vector<Value> expand(const op::FusedTransformerLayer& op, const ExpandContext& c) {
  const TransformerLayerOperands at(op);
  const auto project = [&](Value x, WithBias part) {
    return affine(x, c[part.w], optional_operand(c, part.b));
  };
  const auto norm = [&](Value x, WithBias part, Real eps) {
    const Value gamma = c[part.w];
    const Value beta = op.has_bias ? c[part.b] : filled(c.graph, gamma.type(), 0);
    return layer_norm(x, gamma, beta, {.eps = eps});
  };
  const Value hidden = c[at.hidden];
  const Value heads =
      self_attention(inner_attention(op), project(hidden, at.qkv), optional_operand(c, at.mask));
  const Value h = norm(project(heads, at.out) + hidden, at.ln1, op.eps1);
  const Value inner = activation(op.activation, project(h, at.fc1));
  return {norm(project(inner, at.fc2) + h, at.ln2, op.eps2)};
}

}  // namespace ricci::rule
