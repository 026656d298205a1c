// Blocks: model-level ops, legal only before lowering. A fusion policy decides what they become.
// Vectors beside norms and biases lie along the last axis.
#pragma once

#include <optional>

#include "ricci/op/attention.h"
#include "ricci/op/elementwise.h"
#include "ricci/op/fields.h"

namespace ricci::op {

/// A dense layer.   out = act(x · w + bias),  x [.., K], w [K, N], bias [N]
struct Linear {
  std::optional<UnaryKind> activation = {};

  static constexpr OpInfo info{.name = "linear",
                               .operands = "x, w, bias?",
                               .results = "out",
                               .help = "a dense layer, with optional bias and activation",
                               .formula = "out = act(x · w + bias)",
                               .constraints = "c1 dtype: x, w and bias have one floating dtype\n"
                                              "c2 shape: w is [K, N] and x ends in K\n"
                                              "c3 shape: bias is [N]\n"
                                              "c4 dtype: the activation gives x's dtype from it"};
  static void fields(auto& self, auto&& f) {
    f("activation", self.activation, "function applied last; absent: none");
  }
  bool operator==(const Linear&) const = default;
};

/// A dense layer that stays one op wherever a backend has it, unless it is to be differentiated.
///   out = act(x · w + bias),  x [.., K], w [K, N], bias [N]
struct LinearFused {
  std::optional<UnaryKind> activation = {};

  static constexpr OpInfo info{.name = "linear_fused",
                               .operands = "x, w, bias",
                               .results = "out",
                               .help = "a dense layer kept as one op unless it is differentiated",
                               .formula = "out = act(x · w + bias)",
                               .constraints = "c1 dtype: x, w and bias have one floating dtype\n"
                                              "c2 shape: w is [K, N] and x ends in K\n"
                                              "c3 shape: bias is [N]\n"
                                              "c4 dtype: the activation gives x's dtype from it"};
  static void fields(auto& self, auto&& f) {
    f("activation", self.activation, "function applied last; absent: none");
  }
  bool operator==(const LinearFused&) const = default;
};

/// Two matrices that multiply one value: what a gate and what it gates are made of.
///   first = x · w_first,  second = x · w_second,  x [.., K], w_first [K, N], w_second [K, M]
struct SharedLinearPair {
  static constexpr OpInfo info{.name = "shared_linear_pair",
                               .operands = "x, w_first, w_second",
                               .results = "first, second",
                               .help = "one value times two matrices",
                               .formula = "first = x · w_first; second = x · w_second",
                               .constraints = "c1 dtype: all operands have one floating dtype\n"
                                              "c2 shape: x has rank 2 or more\n"
                                              "c3 shape: w_first and w_second are [x.dim(-1), ..]"};
  static void fields(auto& /*self*/, auto&& /*f*/) {}
  bool operator==(const SharedLinearPair&) const = default;
};

/// A gated feed-forward part.   x [.., W], up_w and gate_w [W, I], down_w [I, O]
///   out = (silu(x · gate_w) · (x · up_w)) · down_w
struct Swiglu {
  static constexpr OpInfo info{
      .name = "swiglu",
      .operands = "x, up_w, gate_w, down_w",
      .results = "out",
      .help = "a gated feed-forward part",
      .formula = "out = (silu(x · gate_w) · (x · up_w)) · down_w",
      .constraints = "c1 dtype: all operands have one floating dtype\n"
                     "c2 shape: x has rank 2 or more\n"
                     "c3 shape: up_w and gate_w are [x.dim(-1), I], down_w is [I, ..]"};
  static void fields(auto& /*self*/, auto&& /*f*/) {}
  bool operator==(const Swiglu&) const = default;
};

/// A residual sum and rms_norm of it along the last axis.
///   sum = x + residual,  out = rms_norm(sum, gamma, beta)
struct ResidualRmsNorm {
  Real eps = 1e-5;

  static constexpr OpInfo info{.name = "residual_rms_norm",
                               .operands = "x, residual, gamma, beta",
                               .results = "out, sum?",
                               .help = "a residual sum and its rms_norm",
                               .formula = "sum = x + residual; out = rms_norm(sum, gamma, beta)",
                               .constraints =
                                   "c1 dtype: all operands have one floating dtype\n"
                                   "c2 shape: x has rank 1 or more, and residual has x's shape\n"
                                   "c3 shape: gamma and beta are [x.dim(-1)]\n"
                                   "c4 attr: eps is not negative"};
  static void fields(auto& self, auto&& f) { f("eps", self.eps, "added to the mean square"); }
  bool operator==(const ResidualRmsNorm&) const = default;
};

/// A convolution of every channel with taps of its own that look back only; `left_pad` is what came
/// before the first step, zeros where it is absent.
///   x [B, S, C], w [C, 1, 1, K], left_pad [B, K-1, C]:
///   out[b, s, c] = Σ_k w[c, 0, 0, k] · concat_1(left_pad, x)[b, s + k, c]
struct DepthwiseConv1dCausal {
  static constexpr OpInfo info{
      .name = "depthwise_conv1d_causal",
      .operands = "x, w, left_pad?",
      .results = "out",
      .help = "a causal convolution of every channel by itself",
      .formula = "out[b, s, c] = Σ_k w[c, 0, 0, k] · concat_1(left_pad, x)[b, s + k, c]",
      .constraints = "c1 dtype: all operands have one floating dtype\n"
                     "c2 shape: x is [B, S, C]\n"
                     "c3 shape: w is [C, 1, 1, K], with K of 1 or more\n"
                     "c4 shape: left_pad is [B, K-1, C]"};
  static void fields(auto& /*self*/, auto&& /*f*/) {}
  bool operator==(const DepthwiseConv1dCausal&) const = default;
};

/// A pre-norm decoder layer with rotary positions and grouped heads, as Llama has it.
///   n = rms_norm(x);  h = x + attention(rope(n·q_w), rope(n·k_w), n·v_w)·o_w
///   out = h + swiglu(rms_norm(h))
/// x is [B, S, W] or [S, W], q_w [W, H·D], k_w and v_w [W, K·D], o_w [H·D, W], gate_w and up_w
/// [W, I], down_w [I, W], cos and sin [S_max ≥ S, D/2], the mask attention's.
struct LlamaDecoderBlock {
  std::int64_t num_heads = 1;
  std::int64_t head_dim = 2;
  std::optional<std::int64_t> num_kv_heads = {};  ///< absent: num_heads
  Real eps = 1e-5;
  MaskKind mask_kind = {};
  std::optional<Real> score_scale = {};         ///< absent: 1/√head_dim
  std::optional<Real> attn_logit_softcap = {};  ///< absent: no cap

  static constexpr OpInfo info{
      .name = "llama_decoder_block",
      .operands = "x, ln1_g, ln1_b, q_w, k_w, v_w, o_w, ln2_g, ln2_b, gate_w, up_w, down_w, cos, "
                  "sin, mask?",
      .results = "out",
      .help = "a pre-norm decoder layer with rotary positions and grouped heads",
      .formula = "n = rms_norm(x); h = x + attention(rope(n·q_w), rope(n·k_w), n·v_w)·o_w; "
                 "out = h + swiglu(rms_norm(h))",
      .constraints =
          "c1 attr: num_heads, num_kv_heads, head_dim and the softcap are positive, eps and the "
          "window are not negative, head_dim is even and num_kv_heads divides num_heads\n"
          "c2 dtype: all operands but a custom mask have one floating dtype\n"
          "c3 shape: x is [B, S, W] or [S, W]\n"
          "c4 shape: q_w is [W, H·D], k_w and v_w [W, K·D], o_w [H·D, W], gate_w and up_w [W, I], "
          "down_w [I, W]\n"
          "c5 shape: ln1_g, ln1_b, ln2_g and ln2_b are [W]\n"
          "c6 shape: cos and sin are [S_max ≥ S, head_dim/2]\n"
          "c7 shape: the mask is one attention takes, given exactly for custom and bias"};
  static void fields(auto& self, auto&& f) {
    f("num_heads", self.num_heads, "query heads", Presence::Required);
    f("head_dim", self.head_dim, "width of a head", Presence::Required);
    f("num_kv_heads", self.num_kv_heads, "key/value heads; absent: num_heads");
    f("eps", self.eps, "added to the norms' mean squares");
    f("mask_kind", self.mask_kind, "which keys a query may see");
    f("score_scale", self.score_scale, "factor on q kᵀ; absent: 1/√head_dim", Presence::Defaulted,
      Range::Factor);
    f("attn_logit_softcap", self.attn_logit_softcap, "bound c of c·tanh(R/c)", Presence::Defaulted,
      Range::Factor);
  }
  bool operator==(const LlamaDecoderBlock&) const = default;
};

/// A head that predicts the token after the next, as Qwen 3.5 has it: the last hidden state and the
/// embedded token that follows are joined and go through a layer of their own.
///   cur = concat(rms_norm(embed_w[input_ids]), rms_norm(h_pre_norm))·eh_w;  n = rms_norm(cur)
///   q, gate = halves of every head of n·q_gate_w;  q, k normalised head by head, then rotated
///   h = cur + (causal attention(q, k, n·v_w) · sigmoid(gate))·o_w;  f = h + swiglu(rms_norm(h))
///   out = rms_norm(f at last_token_idx)·lm_head_w
/// h_pre_norm is [B, S, E], input_ids [B, S], last_token_idx [B], embed_w [V, E], eh_w [2E, E],
/// q_gate_w [E, H·2D], k_w and v_w [E, K·D], o_w [H·D, E], gate_w and up_w [E, I], down_w [I, E],
/// lm_head_w [E, L]; the norms of q and k are [D], the others [E].
struct Qwen35MtpHead {
  std::int64_t num_heads = 1;
  std::int64_t head_dim = 2;
  std::optional<std::int64_t> num_kv_heads = {};  ///< absent: num_heads
  std::optional<std::int64_t> n_rot = {};         ///< absent: head_dim
  Real eps = 1e-5;

  static constexpr OpInfo info{
      .name = "qwen35_mtp_head",
      .operands = "h_pre_norm, input_ids, cos, sin, last_token_idx, embed_w, hnorm_w, hnorm_b, "
                  "enorm_w, enorm_b, eh_w, attn_norm_w, attn_norm_b, q_gate_w, k_w, v_w, q_norm_w, "
                  "q_norm_b, k_norm_w, k_norm_b, o_w, post_norm_w, post_norm_b, gate_w, up_w, "
                  "down_w, head_norm_w, head_norm_b, lm_head_w",
      .results = "out",
      .help = "a head that predicts one token further, with a decoder layer of its own",
      .formula = "cur = concat(rms_norm(embed_w[ids]), rms_norm(h))·eh_w; a = cur + "
                 "(attention · sigmoid(gate))·o_w; out = rms_norm((a + swiglu(rms_norm(a)))[last])"
                 "·lm_head_w",
      .constraints =
          "c1 attr: num_heads, num_kv_heads and head_dim are positive, eps is not negative, "
          "head_dim and n_rot are even, n_rot is from 0 to head_dim and num_kv_heads divides "
          "num_heads\n"
          "c2 dtype: all operands but the indices have one floating dtype\n"
          "c3 dtype: input_ids and last_token_idx are integers\n"
          "c4 shape: h_pre_norm is [B, S, E], input_ids [B, S] and last_token_idx [B]\n"
          "c5 shape: embed_w is [V, E], eh_w [2E, E], q_gate_w [E, H·2D], k_w and v_w [E, K·D], "
          "o_w [H·D, E], gate_w and up_w [E, I], down_w [I, E], lm_head_w [E, L]\n"
          "c6 shape: the norms of q and k are [D], the others [E]\n"
          "c7 shape: cos and sin are [S_max ≥ S, head_dim/2]"};
  static void fields(auto& self, auto&& f) {
    f("num_heads", self.num_heads, "query heads", Presence::Required);
    f("head_dim", self.head_dim, "width of a head", Presence::Required);
    f("num_kv_heads", self.num_kv_heads, "key/value heads; absent: num_heads");
    f("n_rot", self.n_rot, "elements of a head that turn; absent: head_dim");
    f("eps", self.eps, "added to the norms' mean squares");
  }
  bool operator==(const Qwen35MtpHead&) const = default;
};

}  // namespace ricci::op
