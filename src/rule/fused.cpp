// Reference kernels of the fused ops: their definition step by step, without rounding in between.
#include "ricci/op/fused.h"

#include "op/fused_operands.h"
#include "rule/fused_parts.h"
#include "rule/norm_parts.h"
#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

// An operand, or no elements where the attributes leave it out.
RealNd optional_real(const EvalContext& c, std::size_t k) {
  return k == Absent ? RealNd() : c.real(k);
}

// sum = x + residual (+ bias), out = norm(sum)
void eval_residual_norm(EvalContext& c, bool has_bias, double eps, Centred centred) {
  RealNd total = c.real(0);
  add_to(total, c.real(1));
  if (has_bias) add_to(total, c.real(2));
  const std::size_t gamma = has_bias ? 3 : 2;
  if (c.wanted(0)) {
    c.give(0, normalised_last(total, c.real(gamma), c.real(gamma + 1), eps, centred));
  }
  if (c.wanted(1)) c.give(1, total);
}

}  // namespace

// out = act(x·w + bias)
void eval(const op::FusedMatmulBiasAct& op, EvalContext& c) {
  RealNd out = linear(c.real(0), c.real(1), c.real(2), c.result_dims(0));
  for (double& v : out.data) v = op.activation ? eval_unary(*op.activation, v) : v;
  c.give(0, out);
}

void eval(const op::FusedResidualLn& op, EvalContext& c) {
  eval_residual_norm(c, op.has_bias, op.eps, Centred::Yes);
}
void eval(const op::FusedResidualRmsNorm& op, EvalContext& c) {
  eval_residual_norm(c, op.has_bias, op.eps, Centred::No);
}

// out = silu(gate)·up, packed = [up | gate] or [gate | up]
void eval(const op::FusedSwiglu& op, EvalContext& c) {
  const RealNd packed = c.real(0);
  const std::int64_t half = packed.dims.back() / 2;
  const RealNd first = columns(packed, 0, half);
  const RealNd second = columns(packed, half, half);
  const RealNd& gate = op.gate_first ? first : second;
  const RealNd& up = op.gate_first ? second : first;
  RealNd out(first.dims);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.data[i] = eval_unary(UnaryKind::Silu, gate.data[i]) * up.data[i];
  }
  c.give(0, out);
}

// q, k, v = thirds of hidden·qkv_w + qkv_b; out = attention(rope(q), rope(k), v)·out_w + out_b
void eval(const op::FusedAttentionBlock& op, EvalContext& c) {
  const AttentionBlockOperands at(op);
  const std::int64_t width = op.num_heads * op.head_dim;
  const RealNd qkv = linear(c.real(at.hidden), c.real(at.qkv_w), optional_real(c, at.qkv_b));
  RealNd q = columns(qkv, 0, width);
  RealNd k = columns(qkv, width, width);
  if (op.has_rope) {
    q = rotated(q, c.real(at.rope_cos), c.real(at.rope_sin), op.head_dim, op.head_dim);
    k = rotated(k, c.real(at.rope_cos), c.real(at.rope_sin), op.head_dim, op.head_dim);
  }
  const RealNd heads = attended(inner_attention(op), q, k, columns(qkv, 2 * width, width),
                                optional_real(c, at.mask));
  c.give(0, linear(heads, c.real(at.out_w), optional_real(c, at.out_b)));
}

// a = attention(thirds of hidden·qkv_w + qkv_b)·out_w + out_b;  h = layer_norm(a + hidden)
// f = act(h·fc1_w + fc1_b)·fc2_w + fc2_b;                       out = layer_norm(f + h)
void eval(const op::FusedTransformerLayer& op, EvalContext& c) {
  const TransformerLayerOperands at(op);
  const auto project = [&](const RealNd& x, WithBias part) {
    return linear(x, c.real(part.w), optional_real(c, part.b));
  };
  const auto norm = [&](const RealNd& x, WithBias part, double eps) {
    const RealNd gamma = c.real(part.w);
    const RealNd beta = op.has_bias ? c.real(part.b) : RealNd(gamma.dims, 0.0);
    return normalised_last(x, gamma, beta, eps, Centred::Yes);
  };
  const RealNd hidden = c.real(at.hidden);
  const std::int64_t width = op.num_heads * op.head_dim;
  const RealNd qkv = project(hidden, at.qkv);
  const RealNd heads =
      attended(inner_attention(op), columns(qkv, 0, width), columns(qkv, width, width),
               columns(qkv, 2 * width, width), optional_real(c, at.mask));
  RealNd a = project(heads, at.out);
  add_to(a, hidden);
  const RealNd h = norm(a, at.ln1, op.eps1);
  RealNd inner = project(h, at.fc1);
  for (double& v : inner.data) v = eval_unary(op.activation, v);
  RealNd f = project(inner, at.fc2);
  add_to(f, h);
  c.give(0, norm(f, at.ln2, op.eps2));
}

}  // namespace ricci::rule
