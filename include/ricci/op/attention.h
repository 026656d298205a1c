// Attention and its derivative.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci {

/// Which keys a query may see.
struct MaskKind {
  enum class Kind : std::uint8_t { None, Causal, SlidingWindow, Custom, Bias };
  Kind kind = Kind::None;
  std::int64_t window = 0;  ///< sliding_window(w): w keys before the query, and itself

  static MaskKind none() { return {}; }
  static MaskKind causal() { return {Kind::Causal, 0}; }
  static MaskKind sliding_window(std::int64_t w) { return {Kind::SlidingWindow, w}; }
  static MaskKind custom() { return {Kind::Custom, 0}; }
  static MaskKind bias() { return {Kind::Bias, 0}; }
  [[nodiscard]] bool has_operand() const { return kind == Kind::Custom || kind == Kind::Bias; }
  bool operator==(const MaskKind&) const = default;
};
RICCI_DECLARE_CODEC(MaskKind);

/// How heads lie in memory: fused [B, S, H·D] or [S, H·D], bshd [B, S, H, D], bhsd [B, H, S, D].
enum class AttentionLayout : std::uint8_t { Fused, Bshd, Bhsd };
constexpr auto enumerator_names(AttentionLayout) {
  return std::to_array<std::string_view>({"fused", "bshd", "bhsd"});
}

}  // namespace ricci

namespace ricci::op {

/// Scaled dot-product attention with grouped key/value heads. Per batch and head, in this order:
///   R = scale · q kᵀ;  Z = c·tanh(R/c) with a softcap;  Z += bias;  P = softmax over allowed keys,
///   0 elsewhere;  out = P v.   A query with no allowed key gives a zero row.
/// Values may have a width of their own: v and out then hold heads of `value_dim`.
/// `lse` is log Σ e^Z over allowed keys, [batch, H, S_q], at least f32, -inf for masked rows.
struct Attention {
  std::int64_t num_heads = 1;
  std::int64_t head_dim = 1;
  MaskKind mask_kind = {};
  std::optional<Real> score_scale = {};           ///< absent: 1/√head_dim
  std::optional<Real> attn_logit_softcap = {};    ///< absent: no cap
  std::optional<std::int64_t> num_kv_heads = {};  ///< absent: num_heads
  std::optional<AttentionLayout> layout = {};     ///< absent: fused, for ranks 2 and 3
  std::optional<std::int64_t> value_dim = {};     ///< absent: head_dim

  static constexpr OpInfo info{
      .name = "attention",
      .operands = "q, k, v, mask?",
      .results = "out, lse?",
      .help = "scaled dot-product attention with masks, softcap and grouped heads",
      .formula = "out = softmax_allowed(cap(scale · q kᵀ) + bias) v",
      .constraints = "c1 dtype: q, k and v have one floating dtype\n"
                     "c2 attr: layout is given for rank 4 and matches the rank\n"
                     "c3 shape: q holds num_heads heads of head_dim\n"
                     "c4 shape: k and v have q's batch, as many rows, and num_kv_heads heads of "
                     "head_dim and of value_dim\n"
                     "c5 attr: num_kv_heads divides num_heads\n"
                     "c6 shape: causal and sliding_window need S_q ≤ S_k\n"
                     "c7 attr: a mask operand is given exactly for custom and bias\n"
                     "c8 shape: the mask is [batch, S_k] (custom) or broadcasts to "
                     "[batch, H, S_q, S_k]\n"
                     "c9 dtype: a bias has q's dtype\n"
                     "c10 attr: the softcap is positive and the window is not negative",
      .jvp = RuleSource::Expansion,
      .keeps_residuals = true};
  static void fields(auto& self, auto&& f) {
    f("num_heads", self.num_heads, "query heads", Presence::Required);
    f("head_dim", self.head_dim, "width of a head", Presence::Required);
    f("mask_kind", self.mask_kind, "which keys a query may see");
    f("score_scale", self.score_scale, "factor on q kᵀ; absent: 1/√head_dim", Presence::Defaulted,
      Range::Factor);
    f("attn_logit_softcap", self.attn_logit_softcap, "bound c of c·tanh(R/c)", Presence::Defaulted,
      Range::Factor);
    f("num_kv_heads", self.num_kv_heads, "key/value heads; absent: num_heads");
    f("layout", self.layout, "how heads lie in memory; absent: fused");
    f("value_dim", self.value_dim, "width of a head of v and out; absent: head_dim");
  }
  void normalize(std::span<const Type> operands);
  /// Width of a head of v and out.
  [[nodiscard]] std::int64_t value_width() const { return value_dim.value_or(head_dim); }
  bool operator==(const Attention&) const = default;
};

/// The derivative of attention's `out`. P is recomputed, from `lse` when it is given.
///   dv = Pᵀ dy;  dP = dy vᵀ;  dZ = P ⊙ (dP - Σ_j P ⊙ dP);  dbias = dZ summed to bias's shape;
///   dR = dZ ⊙ (1 - tanh²(R/c)) with a softcap, else dZ;  dq = scale·dR k;  dk = scale·dRᵀ q
/// Key/value gradients are summed over the query heads of a group. A query with no allowed key
/// adds nothing to any gradient.
/// Operand 4 is the mask when mask_kind takes one; lse, if given, comes after that, and behind it,
/// if given, mean, which is Σ_j P ⊙ dy vᵀ of every query: what the forward pass gave for it times
/// dy. `dbias` exists for mask_kind bias only.
struct AttentionBackward {
  std::int64_t num_heads = 1;
  std::int64_t head_dim = 1;
  MaskKind mask_kind = {};
  std::optional<Real> score_scale = {};
  std::optional<Real> attn_logit_softcap = {};
  std::optional<std::int64_t> num_kv_heads = {};
  std::optional<AttentionLayout> layout = {};
  std::optional<std::int64_t> value_dim = {};

  static constexpr OpInfo info{
      .name = "attention_backward",
      .operands = "q, k, v, dy, mask?, lse?, mean?",
      .results = "dq, dk, dv, dbias?",
      .help = "derivative of attention",
      .formula = "dv = Pᵀ dy; dZ = P ⊙ (dy vᵀ - Σ_j P ⊙ dy vᵀ); dR = dZ ⊙ cap'(R); "
                 "dq = scale · dR k; dk = scale · dRᵀ q",
      .constraints = "c1 dtype: q, k and v have one floating dtype\n"
                     "c2 attr: layout is given for rank 4 and matches the rank\n"
                     "c3 shape: q holds num_heads heads of head_dim\n"
                     "c4 shape: k and v have q's batch, as many rows, and num_kv_heads heads of "
                     "head_dim and of value_dim\n"
                     "c5 attr: num_kv_heads divides num_heads\n"
                     "c6 shape: causal and sliding_window need S_q ≤ S_k\n"
                     "c7 attr: a mask operand is given exactly for custom and bias\n"
                     "c8 shape: the mask is [batch, S_k] (custom) or broadcasts to "
                     "[batch, H, S_q, S_k]\n"
                     "c9 dtype: a bias has q's dtype\n"
                     "c10 attr: the softcap is positive and the window is not negative\n"
                     "c11 shape: dy has the type of attention's result\n"
                     "c12 shape: lse and mean are [batch, H, S_q], of q's dtype but at least f32",
      .vjp = RuleSource::Expansion,
      .jvp = RuleSource::Expansion};
  static void fields(auto& self, auto&& f) { Attention::fields(self, f); }
  void normalize(std::span<const Type> operands);
  /// The op this is the derivative of.
  [[nodiscard]] Attention forward() const {
    return {num_heads,          head_dim,     mask_kind, score_scale,
            attn_logit_softcap, num_kv_heads, layout,    value_dim};
  }
  bool operator==(const AttentionBackward&) const = default;
};

}  // namespace ricci::op
