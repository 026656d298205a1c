// Which operand of a fused block is which: attributes decide which ones there are.
#pragma once

#include <cstddef>

#include "ricci/op/fused.h"

namespace ricci {

/// The place of an operand that is not there.
inline constexpr std::size_t Absent = static_cast<std::size_t>(-1);

struct AttentionBlockOperands {
  std::size_t hidden = Absent;
  std::size_t qkv_w = Absent;
  std::size_t out_w = Absent;
  std::size_t mask = Absent;
  std::size_t qkv_b = Absent;
  std::size_t out_b = Absent;
  std::size_t rope_cos = Absent;
  std::size_t rope_sin = Absent;
  std::size_t count = 0;

  explicit AttentionBlockOperands(const op::FusedAttentionBlock& op) {
    for (std::size_t* k : {&hidden, &qkv_w, &out_w}) *k = count++;
    if (op.mask_kind.has_operand()) mask = count++;
    if (op.has_bias) qkv_b = count++;
    if (op.has_bias) out_b = count++;
    if (op.has_rope) rope_cos = count++;
    if (op.has_rope) rope_sin = count++;
  }
};

/// A matrix or a norm's factor, and the bias that follows it.
struct WithBias {
  std::size_t w = Absent;
  std::size_t b = Absent;
};

struct TransformerLayerOperands {
  std::size_t hidden = Absent;
  WithBias qkv;
  WithBias out;
  WithBias ln1;
  WithBias fc1;
  WithBias fc2;
  WithBias ln2;
  std::size_t mask = Absent;
  std::size_t count = 0;

  explicit TransformerLayerOperands(const op::FusedTransformerLayer& op) {
    hidden = count++;
    for (WithBias* part : {&qkv, &out, &ln1, &fc1, &fc2, &ln2}) {
      part->w = count++;
      if (op.has_bias) part->b = count++;
    }
    if (op.mask_kind.has_operand()) mask = count++;
  }
};

/// The attention inside a fused block.
[[nodiscard]] op::Attention inner_attention(const auto& op) {
  return {.num_heads = op.num_heads,
          .head_dim = op.head_dim,
          .mask_kind = op.mask_kind,
          .score_scale = op.score_scale,
          .attn_logit_softcap = op.attn_logit_softcap};
}

}  // namespace ricci
