#include "ricci/op/block.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "op/block_operands.h"
#include "op/fused_checks.h"
#include "op/infer_rules.h"

namespace ricci {
namespace {

Inferred infer_linear(const InferContext& in, const std::optional<UnaryKind>& activation) {
  require_dtypes(in, "c1", 0, in.operands.size(), dtypes::floats);
  const Dims& x = in[0].dims;
  const Dims& w = in[1].dims;
  if (x.empty() || w.size() != 2 || !(x.back() == w[0])) {
    in.reject("c2", fmt::format("x {} does not meet w {}", to_string(x), to_string(w)),
              "w is [inputs, outputs], and x ends in inputs");
  }
  if (in.operands.size() == 3 && in[2].dims != Dims{w[1]}) {
    in.reject("c3", fmt::format("the bias is {}, but the layer has {} outputs", in[2].to_string(),
                                w[1].to_string()));
  }
  if (activation) require_activation(in, "c4", *activation);
  Type out = in[0];
  out.dims.back() = w[1];
  return out;
}

// The columns of a matrix with so many rows; rejects `label` for another operand.
Dim require_matrix(const InferContext& in, std::string_view label, std::size_t k,
                   std::string_view operand, const Dim& rows) {
  if (in[k].rank() != 2 || !(in[k].dims[0] == rows)) {
    in.reject(label, fmt::format("'{}' is {}, but must be a matrix of {} rows", operand,
                                 in[k].to_string(), rows.to_string()));
  }
  return in[k].dims[1];
}

void require_eps(const InferContext& in, std::string_view label, double eps) {
  if (!(eps >= 0)) in.reject(label, fmt::format("eps is {}, but must not be negative", eps));
}

// Heads, key/value heads and their width, of a block that rotates them.
void require_heads(const InferContext& in, std::string_view label, const auto& op) {
  const std::int64_t shared = op.num_kv_heads.value_or(op.num_heads);
  if (op.num_heads < 1 || shared < 1 || op.num_heads % shared != 0 || op.head_dim < 1 ||
      op.head_dim % 2 != 0) {
    in.reject(label,
              fmt::format("{} heads of width {} with {} heads of keys make no sense", op.num_heads,
                          op.head_dim, shared),
              "num_kv_heads divides num_heads, and head_dim is even");
  }
  require_eps(in, label, op.eps);
}

// Both matrices of a gate and the one behind it, beside values of so many columns. Gives what comes
// out.
Dim require_gated(const InferContext& in, std::string_view label, const Dim& width, std::size_t up,
                  std::size_t gate, std::size_t down) {
  const Dim inner = require_matrix(in, label, up, "up_w", width);
  require_dims(in, label, gate, "gate_w", {width, inner});
  return require_matrix(in, label, down, "down_w", inner);
}

// All operands have one floating dtype, but for `skipped`.
void require_one_float(const InferContext& in, std::string_view label,
                       std::initializer_list<std::size_t> skipped) {
  for (std::size_t k = 0; k < in.operands.size(); ++k) {
    if (std::ranges::count(skipped, k) > 0) continue;
    if (dtypes::floats.has(in[k].dtype) && in[k].dtype == in[0].dtype) continue;
    in.reject(label,
              fmt::format("operand {} is {}, and the first one {}", k, name(in[k].dtype),
                          name(in[0].dtype)),
              "they have one floating dtype");
  }
}

}  // namespace

Inferred infer(const op::Linear& op, const InferContext& in) {
  return infer_linear(in, op.activation);
}
Inferred infer(const op::LinearFused& op, const InferContext& in) {
  return infer_linear(in, op.activation);
}

Inferred infer(const op::SharedLinearPair& /*op*/, const InferContext& in) {
  require_dtypes(in, "c1", 0, 3, dtypes::floats);
  if (in[0].rank() < 2) in.reject("c2", fmt::format("x is {}", in[0].to_string()));
  std::vector<Type> out(2, in[0]);
  const Dim rows = in[0].dims.back();
  out[0].dims.back() = require_matrix(in, "c3", 1, "w_first", rows);
  out[1].dims.back() = require_matrix(in, "c3", 2, "w_second", rows);
  return out;
}

Inferred infer(const op::Swiglu& /*op*/, const InferContext& in) {
  require_dtypes(in, "c1", 0, 4, dtypes::floats);
  if (in[0].rank() < 2) in.reject("c2", fmt::format("x is {}", in[0].to_string()));
  Type out = in[0];
  out.dims.back() = require_gated(in, "c3", in[0].dims.back(), 1, 2, 3);
  return out;
}

Inferred infer(const op::ResidualRmsNorm& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 4, dtypes::floats);
  if (in[0].rank() < 1 || in[1].dims != in[0].dims) {
    in.reject("c2", fmt::format("x {} and the residual {} must have one shape, of rank 1 or more",
                                in[0].to_string(), in[1].to_string()));
  }
  require_dims(in, "c3", 2, "gamma", {in[0].dims.back()});
  require_dims(in, "c3", 3, "beta", {in[0].dims.back()});
  require_eps(in, "c4", op.eps);
  return std::vector<Type>{in[0], in[0]};
}

Inferred infer(const op::DepthwiseConv1dCausal& /*op*/, const InferContext& in) {
  require_dtypes(in, "c1", 0, in.operands.size(), dtypes::floats);
  if (in[0].rank() != 3) in.reject("c2", fmt::format("x is {}", in[0].to_string()));
  const Dims& x = in[0].dims;
  const Dim taps = in[1].rank() == 4 ? in[1].dims[3] : Dim(1);
  require_dims(in, "c3", 1, "w", {x[2], 1, 1, taps});
  if (taps.is(0)) in.reject("c3", "a kernel has at least one tap");
  if (in.operands.size() == 3) {
    require_dims(in, "c4", 2, "left_pad", {x[0], taps - Dim(1), x[2]});
  }
  return in[0];
}

Inferred infer(const op::LlamaDecoderBlock& op, const InferContext& in) {
  using At = DecoderOperand;
  require_heads(in, "c1", op);
  if ((op.attn_logit_softcap && !(*op.attn_logit_softcap > 0)) || op.mask_kind.window < 0) {
    in.reject("c1", "the softcap is positive and the window is not negative");
  }
  const bool has_mask = in.operands.size() > At::Mask;
  const bool custom = op.mask_kind.kind == MaskKind::Kind::Custom;
  require_one_float(in, "c2", {has_mask && custom ? std::size_t{At::Mask} : in.operands.size()});
  if (in[At::X].rank() != 2 && in[At::X].rank() != 3) {
    in.reject("c3", fmt::format("x is {}", in[At::X].to_string()));
  }
  const Dim width = in[At::X].dims.back();
  const Dim all = Dim(op.num_heads) * op.head_dim;
  const Dim shared = Dim(op.num_kv_heads.value_or(op.num_heads)) * op.head_dim;
  require_dims(in, "c4", At::Q, "q_w", {width, all});
  require_dims(in, "c4", At::K, "k_w", {width, shared});
  require_dims(in, "c4", At::V, "v_w", {width, shared});
  require_dims(in, "c4", At::O, "o_w", {all, width});
  const Dim back = require_gated(in, "c4", width, At::Up, At::Gate, At::Down);
  if (!(back == width)) {
    in.reject("c4", fmt::format("down_w gives {} columns, but x has {}", back.to_string(),
                                width.to_string()));
  }
  for (const std::size_t k : {At::Ln1G, At::Ln1B, At::Ln2G, At::Ln2B}) {
    require_dims(in, "c5", k, "a norm", {width});
  }
  require_tables(in, "c6", At::Cos, At::Sin, in[At::X].dims[in[At::X].rank() - 2], op.head_dim);
  require_mask(in, "c7", attention_of(op), has_mask ? std::size_t{At::Mask} : Absent);
  return in[At::X];
}

Inferred infer(const op::Qwen35MtpHead& op, const InferContext& in) {
  using At = MtpOperand;
  require_heads(in, "c1", op);
  const std::int64_t turned = op.n_rot.value_or(op.head_dim);
  if (turned < 0 || turned > op.head_dim || turned % 2 != 0) {
    in.reject("c1", fmt::format("n_rot is {}, and heads are {} wide", turned, op.head_dim));
  }
  require_one_float(in, "c2", {At::Ids, At::Last});
  for (const std::size_t k : {At::Ids, At::Last}) {
    if (dtypes::ints.has(in[k].dtype)) continue;
    in.reject("c3", fmt::format("operand {} is {}", k, name(in[k].dtype)));
  }
  const Dims& hidden = in[At::Hidden].dims;
  if (hidden.size() != 3) {
    in.reject("c4", fmt::format("h_pre_norm is {}", in[At::Hidden].to_string()));
  }
  require_dims(in, "c4", At::Ids, "input_ids", {hidden[0], hidden[1]});
  require_dims(in, "c4", At::Last, "last_token_idx", {hidden[0]});
  const Dim& width = hidden[2];
  const Dim all = Dim(op.num_heads) * op.head_dim;
  const Dim shared = Dim(op.num_kv_heads.value_or(op.num_heads)) * op.head_dim;
  const Dim tokens = in[At::Embed].rank() == 2 ? in[At::Embed].dims[0] : Dim(1);
  require_dims(in, "c5", At::Embed, "embed_w", {tokens, width});
  require_dims(in, "c5", At::Eh, "eh_w", {width * 2, width});
  require_dims(in, "c5", At::QGate, "q_gate_w", {width, all * 2});
  require_dims(in, "c5", At::K, "k_w", {width, shared});
  require_dims(in, "c5", At::V, "v_w", {width, shared});
  require_dims(in, "c5", At::O, "o_w", {all, width});
  const Dim back = require_gated(in, "c5", width, At::Up, At::Gate, At::Down);
  require_dims(in, "c5", At::Down, "down_w", {in[At::Down].dims[0], width});
  const Dim logits = require_matrix(in, "c5", At::LmHead, "lm_head_w", back);
  for (const std::size_t k : {At::QNormW, At::QNormB, At::KNormW, At::KNormB}) {
    require_dims(in, "c6", k, "a norm of heads", {op.head_dim});
  }
  for (const std::size_t k :
       {At::HNormW, At::HNormB, At::ENormW, At::ENormB, At::AttnNormW, At::AttnNormB, At::PostNormW,
        At::PostNormB, At::HeadNormW, At::HeadNormB}) {
    require_dims(in, "c6", k, "a norm", {width});
  }
  require_tables(in, "c7", At::Cos, At::Sin, hidden[1], op.head_dim);
  Type out = in[At::Hidden];
  out.dims = {hidden[0], logits};
  return out;
}

}  // namespace ricci
