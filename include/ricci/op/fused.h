// Fused ops: several steps of a network as one node, defined by their expansion. Biases lie along
// the last axis. Where attributes decide which operands there are, the comment gives their order.
#pragma once

#include <optional>

#include "ricci/op/attention.h"
#include "ricci/op/elementwise.h"
#include "ricci/op/fields.h"

namespace ricci::op {

/// A dense layer.   x [.., M, K], w [.., K, N], bias [N]:  out = act(x·w + bias)
struct FusedMatmulBiasAct {
  std::optional<UnaryKind> activation = {};  ///< absent: the identity

  static constexpr OpInfo info{.name = "fused_matmul_bias_act",
                               .operands = "x, w, bias",
                               .results = "out",
                               .help = "matrix product, bias and activation",
                               .formula = "out = act(x·w + bias)",
                               .constraints = "c1 dtype: all operands have one floating dtype\n"
                                              "c2 shape: x and w multiply as matmul's operands do\n"
                                              "c3 shape: bias is [w.dim(-1)]\n"
                                              "c4 dtype: the activation gives the dtype it takes",
                               .numerics = Numerics::Compute};
  static void fields(auto& self, auto&& f) {
    f("activation", self.activation, "function applied last; absent: none");
  }
  bool operator==(const FusedMatmulBiasAct&) const = default;
};

/// Residual sum and layer_norm of it along the last axis. Operands: x, residual, (bias), gamma,
/// beta.   sum = x + residual (+ bias), out = layer_norm(sum)
struct FusedResidualLn {
  bool has_bias = false;
  Real eps = 1e-5;

  static constexpr OpInfo info{
      .name = "fused_residual_ln",
      .operands = "operands...",
      .results = "out, sum?",
      .help = "residual sum and its layer_norm",
      .formula = "sum = x + residual (+ bias); out = layer_norm(sum, gamma, beta)",
      .constraints = "c1 attr: the operands are x, residual, (bias), gamma, beta\n"
                     "c2 dtype: all operands have one floating dtype\n"
                     "c3 shape: x has rank 1 or more, and residual has x's shape\n"
                     "c4 shape: bias, gamma and beta are [x.dim(-1)]\n"
                     "c5 attr: eps is not negative"};
  static void fields(auto& self, auto&& f) {
    f("has_bias", self.has_bias, "a bias is added to the sum");
    f("eps", self.eps, "added to the variance");
  }
  bool operator==(const FusedResidualLn&) const = default;
};

/// Residual sum and rms_norm of it along the last axis. Operands: x, residual, (bias), gamma,
/// beta.   sum = x + residual (+ bias), out = rms_norm(sum)
struct FusedResidualRmsNorm {
  bool has_bias = false;
  Real eps = 1e-5;

  static constexpr OpInfo info{
      .name = "fused_residual_rms_norm",
      .operands = "operands...",
      .results = "out, sum?",
      .help = "residual sum and its rms_norm",
      .formula = "sum = x + residual (+ bias); out = rms_norm(sum, gamma, beta)",
      .constraints = "c1 attr: the operands are x, residual, (bias), gamma, beta\n"
                     "c2 dtype: all operands have one floating dtype\n"
                     "c3 shape: x has rank 1 or more, and residual has x's shape\n"
                     "c4 shape: bias, gamma and beta are [x.dim(-1)]\n"
                     "c5 attr: eps is not negative"};
  static void fields(auto& self, auto&& f) {
    f("has_bias", self.has_bias, "a bias is added to the sum");
    f("eps", self.eps, "added to the mean square");
  }
  bool operator==(const FusedResidualRmsNorm&) const = default;
};

/// A gated linear unit on packed halves [up | gate], or [gate | up] with gate_first.
///   packed [.., 2N]:  out [.., N] = silu(gate) · up, as cast_to
/// It is computed in the wider of the two dtypes and rounded once.
struct FusedSwiglu {
  std::optional<DType> cast_to = {};  ///< absent: packed's dtype
  bool gate_first = false;

  static constexpr OpInfo info{.name = "fused_swiglu",
                               .operands = "packed",
                               .results = "out",
                               .help = "gated linear unit on packed halves",
                               .formula = "packed [.., 2N] = [up | gate]: out = silu(gate)·up",
                               .constraints =
                                   "c1 dtype: packed is floating\n"
                                   "c2 shape: packed has rank 1 or more and an even last size\n"
                                   "c3 dtype: cast_to is floating",
                               .numerics = Numerics::Elementwise};
  static void fields(auto& self, auto&& f) {
    f("cast_to", self.cast_to, "dtype of the result; absent: packed's");
    f("gate_first", self.gate_first, "the gate is the first half");
  }
  bool operator==(const FusedSwiglu&) const = default;
};

/// Self-attention between its projections. Operands: hidden [B, S, W] or [S, W], qkv_w [W, 3·H·D],
/// out_w [H·D, O], then mask (as attention's, if mask_kind has one), then qkv_b [3·H·D] and
/// out_b [O] (has_bias), then rope_cos and rope_sin [S_max ≥ S, D/2] (has_rope).
///   q, k, v = thirds of hidden·qkv_w + qkv_b;  out = attention(rope(q), rope(k), v)·out_w + out_b
struct FusedAttentionBlock {
  std::int64_t num_heads = 1;
  std::int64_t head_dim = 1;
  bool has_bias = false;
  bool has_rope = false;
  MaskKind mask_kind = MaskKind::custom();
  std::optional<Real> score_scale = {};         ///< absent: 1/√head_dim
  std::optional<Real> attn_logit_softcap = {};  ///< absent: no cap

  static constexpr OpInfo info{
      .name = "fused_attention_block",
      .operands = "operands...",
      .results = "out",
      .help = "self-attention between its projections",
      .formula = "q, k, v = thirds of hidden·qkv_w (+ qkv_b); "
                 "out = attention(rope(q), rope(k), v)·out_w (+ out_b)",
      .constraints = "c1 attr: num_heads, head_dim and the softcap are positive, the window is not "
                     "negative\n"
                     "c2 attr: the operands are hidden, qkv_w, out_w, (mask), (qkv_b, out_b), "
                     "(rope_cos, rope_sin)\n"
                     "c3 dtype: all operands but a custom mask have one floating dtype\n"
                     "c4 shape: hidden is [B, S, W] or [S, W], qkv_w [W, 3·H·D], out_w [H·D, O]\n"
                     "c5 shape: qkv_b is [3·H·D] and out_b is [O]\n"
                     "c6 shape: rope tables are [S_max ≥ S, head_dim/2], for an even head_dim\n"
                     "c7 shape: the mask is one attention takes",
      .numerics = Numerics::Compute};
  static void fields(auto& self, auto&& f) {
    f("num_heads", self.num_heads, "heads", Presence::Required);
    f("head_dim", self.head_dim, "width of a head", Presence::Required);
    f("has_bias", self.has_bias, "the projections have biases");
    f("has_rope", self.has_rope, "queries and keys are rotated");
    f("mask_kind", self.mask_kind, "which keys a query may see");
    f("score_scale", self.score_scale, "factor on q kᵀ; absent: 1/√head_dim", Presence::Defaulted,
      Range::Factor);
    f("attn_logit_softcap", self.attn_logit_softcap, "bound c of c·tanh(R/c)", Presence::Defaulted,
      Range::Factor);
  }
  bool operator==(const FusedAttentionBlock&) const = default;
};

/// A post-norm encoder layer. Operands with has_bias: hidden, qkv_w, qkv_b, out_w, out_b, ln1_g,
/// ln1_b, fc1_w, fc1_b, fc2_w, fc2_b, ln2_g, ln2_b, (mask); without: hidden, qkv_w, out_w, ln1_g,
/// fc1_w, fc2_w, ln2_g, (mask), all biases then being zero. The mask, attention's, is there if
/// mask_kind has one.
///   a = attention(thirds of hidden·qkv_w + qkv_b)·out_w + out_b;  h = layer_norm(a + hidden)
///   f = act(h·fc1_w + fc1_b)·fc2_w + fc2_b;                       out = layer_norm(f + h)
struct FusedTransformerLayer {
  std::int64_t num_heads = 1;
  std::int64_t head_dim = 1;
  Dim intermediate_size = 1;
  Real eps1 = 1e-5;
  Real eps2 = 1e-5;
  UnaryKind activation = UnaryKind::Gelu;
  bool has_bias = false;
  MaskKind mask_kind = MaskKind::custom();
  std::optional<Real> score_scale = {};         ///< absent: 1/√head_dim
  std::optional<Real> attn_logit_softcap = {};  ///< absent: no cap

  static constexpr OpInfo info{
      .name = "fused_transformer_layer",
      .operands = "operands...",
      .results = "out",
      .help = "a post-norm encoder layer",
      .formula = "h = layer_norm(attention_block(hidden) + hidden); "
                 "out = layer_norm(act(h·fc1_w + fc1_b)·fc2_w + fc2_b + h)",
      .constraints =
          "c1 attr: num_heads, head_dim and the softcap are positive, eps1, eps2 and the window "
          "are not negative\n"
          "c2 attr: the operands are hidden, qkv_w, (qkv_b), out_w, (out_b), ln1_g, (ln1_b), "
          "fc1_w, (fc1_b), fc2_w, (fc2_b), ln2_g, (ln2_b), (mask)\n"
          "c3 dtype: all operands but a custom mask have one floating dtype\n"
          "c4 shape: hidden is [B, S, W] or [S, W], qkv_w [W, 3·H·D], out_w [H·D, W], "
          "fc1_w [W, I], fc2_w [I, W]\n"
          "c5 shape: qkv_b is [3·H·D], fc1_b [I], the other vectors [W]\n"
          "c6 shape: the mask is one attention takes\n"
          "c7 dtype: the activation gives the dtype it takes",
      .numerics = Numerics::Compute};
  static void fields(auto& self, auto&& f) {
    f("num_heads", self.num_heads, "heads", Presence::Required);
    f("head_dim", self.head_dim, "width of a head", Presence::Required);
    f("intermediate_size", self.intermediate_size, "width inside the feed-forward part",
      Presence::Required);
    f("eps1", self.eps1, "added to the first norm's variance");
    f("eps2", self.eps2, "added to the second norm's variance");
    f("activation", self.activation, "function of the feed-forward part", Presence::Required);
    f("has_bias", self.has_bias, "projections and norms have biases");
    f("mask_kind", self.mask_kind, "which keys a query may see");
    f("score_scale", self.score_scale, "factor on q kᵀ; absent: 1/√head_dim", Presence::Defaulted,
      Range::Factor);
    f("attn_logit_softcap", self.attn_logit_softcap, "bound c of c·tanh(R/c)", Presence::Defaulted,
      Range::Factor);
  }
  bool operator==(const FusedTransformerLayer&) const = default;
};

}  // namespace ricci::op
