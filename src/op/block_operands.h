// The places of the operands of large blocks, in the order of their names.
#pragma once

#include <cstddef>

#include "ricci/op/block.h"

namespace ricci {

/// Of `llama_decoder_block`; the mask, where there is one, is the last.
struct DecoderOperand {
  enum : std::size_t {
    X,
    Ln1G,
    Ln1B,
    Q,
    K,
    V,
    O,
    Ln2G,
    Ln2B,
    Gate,
    Up,
    Down,
    Cos,
    Sin,
    Mask,
  };
};

/// Of `qwen35_mtp_head`.
struct MtpOperand {
  enum : std::size_t {
    Hidden,
    Ids,
    Cos,
    Sin,
    Last,
    Embed,
    HNormW,
    HNormB,
    ENormW,
    ENormB,
    Eh,
    AttnNormW,
    AttnNormB,
    QGate,
    K,
    V,
    QNormW,
    QNormB,
    KNormW,
    KNormB,
    O,
    PostNormW,
    PostNormB,
    Gate,
    Up,
    Down,
    HeadNormW,
    HeadNormB,
    LmHead,
    Count,
  };
};

/// The attention inside a decoder block.
[[nodiscard]] inline op::Attention attention_of(const op::LlamaDecoderBlock& op) {
  return {.num_heads = op.num_heads,
          .head_dim = op.head_dim,
          .mask_kind = op.mask_kind,
          .score_scale = op.score_scale,
          .attn_logit_softcap = op.attn_logit_softcap,
          .num_kv_heads = op.num_kv_heads};
}
[[nodiscard]] inline op::Attention attention_of(const op::Qwen35MtpHead& op) {
  return {.num_heads = op.num_heads,
          .head_dim = op.head_dim,
          .mask_kind = MaskKind::causal(),
          .num_kv_heads = op.num_kv_heads};
}

}  // namespace ricci
