#include "ricci/op/attention.h"

#include <array>

#include <fmt/format.h>

#include "op/attention_shape.h"
#include "op/infer_rules.h"

namespace ricci {
namespace {

constexpr std::array<std::string_view, 5> MaskNames = {"none", "causal", "sliding_window", "custom",
                                                       "bias"};

void check_mask(const op::Attention& op, const InferContext& in, const AttentionShape& s,
                std::size_t operand_index, bool given) {
  if (given != op.mask_kind.has_operand()) {
    in.reject("c7",
              fmt::format("a mask operand is {}, but mask_kind is {}", given ? "given" : "missing",
                          to_attr(op.mask_kind).to_string()),
              "mask_kind custom and bias take one, the others none");
  }
  if (!given) return;
  const Type& mask = in[operand_index];
  const bool key_padding = op.mask_kind.kind == MaskKind::Kind::Custom && mask.rank() == 2;
  const Dims full =
      key_padding ? Dims{s.batch, s.keys} : Dims{s.batch, op.num_heads, s.queries, s.keys};
  const auto joined = broadcast(mask.dims, full);
  const bool rank_ok = key_padding || mask.rank() == 4;
  if (!rank_ok || !joined || *joined != full) {
    in.reject("c8", fmt::format("the mask {} does not broadcast to {}", mask.to_string(),
                                to_string(full)));
  }
  if (op.mask_kind.kind == MaskKind::Kind::Bias && mask.dtype != in[0].dtype) {
    in.reject("c9", fmt::format("the bias is {}, but q is {}", name(mask.dtype), name(in[0].dtype)),
              "cast the bias");
  }
}

}  // namespace

AttrValue AttrCodec<MaskKind>::to(const MaskKind& mask) {
  Enumerator e{std::string(MaskNames[static_cast<std::size_t>(mask.kind)]), {}};
  if (mask.kind == MaskKind::Kind::SlidingWindow) e.args.push_back({mask.window});
  return {std::move(e)};
}

MaskKind AttrCodec<MaskKind>::from(const AttrValue& v) {
  const auto* e = v.get<Enumerator>();
  for (std::size_t i = 0; e != nullptr && i < MaskNames.size(); ++i) {
    if (e->name != MaskNames[i]) continue;
    const auto kind = static_cast<MaskKind::Kind>(i);
    const std::size_t wanted_args = kind == MaskKind::Kind::SlidingWindow ? 1 : 0;
    if (e->args.size() != wanted_args) break;
    return {kind, wanted_args == 1 ? from_attr<std::int64_t>(e->args[0]) : 0};
  }
  throw AttrMismatch{describe()};
}

std::string AttrCodec<MaskKind>::describe() {
  return "none, causal, sliding_window(w), custom or bias";
}

// A width that is that of keys is not said twice.
void op::Attention::normalize(std::span<const Type> /*operands*/) {
  if (value_dim == head_dim) value_dim.reset();
}
void op::AttentionBackward::normalize(std::span<const Type> /*operands*/) {
  if (value_dim == head_dim) value_dim.reset();
}

// Where batch, sequence and heads lie in an operand of each layout.
std::optional<HeadedShape> headed_shape(AttentionLayout layout, const Dims& dims,
                                        std::int64_t heads, std::int64_t head_dim) {
  HeadedShape s;
  const Dim width = Dim(heads) * head_dim;
  switch (layout) {
    case AttentionLayout::Fused:
      if (dims.size() != 2 && dims.size() != 3) return std::nullopt;
      s.batch = dims.size() == 3 ? dims[0] : Dim(1);
      s.sequence = dims[dims.size() - 2];
      s.matches = dims.back() == width;
      return s;
    case AttentionLayout::Bshd:
      if (dims.size() != 4) return std::nullopt;
      s.batch = dims[0];
      s.sequence = dims[1];
      s.matches = dims[2] == Dim(heads) && dims[3] == Dim(head_dim);
      return s;
    case AttentionLayout::Bhsd:
      if (dims.size() != 4) return std::nullopt;
      s.batch = dims[0];
      s.sequence = dims[2];
      s.matches = dims[1] == Dim(heads) && dims[3] == Dim(head_dim);
      return s;
  }
  return std::nullopt;
}

AttentionShape check_attention(const op::Attention& op, const InferContext& in,
                               std::size_t mask_index, bool mask_given) {
  require_dtypes(in, "c1", 0, 3, dtypes::floats);
  if (!op.layout && in[0].rank() == 4) {
    in.reject("c2", "rank-4 attention needs its layout", "add {layout = bshd} or {layout = bhsd}");
  }
  const AttentionLayout layout = op.layout.value_or(AttentionLayout::Fused);
  const std::int64_t kv_heads = op.num_kv_heads.value_or(op.num_heads);
  const auto q = headed_shape(layout, in[0].dims, op.num_heads, op.head_dim);
  const auto k = headed_shape(layout, in[1].dims, kv_heads, op.head_dim);
  const auto v = headed_shape(layout, in[2].dims, kv_heads, op.value_width());
  if (!q || !k || !v) {
    in.reject("c2", fmt::format("layout {} does not fit q {}, k {} and v {}", name_of(layout),
                                in[0].to_string(), in[1].to_string(), in[2].to_string()));
  }
  if (!q->matches || op.num_heads < 1 || op.head_dim < 1) {
    in.reject("c3", fmt::format("q {} does not hold {} heads of width {}", in[0].to_string(),
                                op.num_heads, op.head_dim));
  }
  const bool together = in[1].rank() == in[2].rank() && k->sequence == v->sequence;
  const bool match = k->matches && v->matches && k->batch == q->batch && v->batch == q->batch;
  if (!together || !match || op.value_width() < 1) {
    in.reject("c4", fmt::format("k {} and v {} do not hold {} heads of width {} and {} for q {}",
                                in[1].to_string(), in[2].to_string(), kv_heads, op.head_dim,
                                op.value_width(), in[0].to_string()));
  }
  if (kv_heads < 1 || op.num_heads % kv_heads != 0) {
    in.reject("c5", fmt::format("{} key/value heads do not divide {} query heads", kv_heads,
                                op.num_heads));
  }
  const AttentionShape s{q->batch, q->sequence, k->sequence, layout};
  const bool ordered = op.mask_kind.kind == MaskKind::Kind::Causal ||
                       op.mask_kind.kind == MaskKind::Kind::SlidingWindow;
  const auto slack = (s.keys - s.queries).try_value();
  if (ordered && slack && *slack < 0) {
    in.reject("c6", fmt::format("{} queries cannot look back on {} keys", s.queries.to_string(),
                                s.keys.to_string()));
  }
  check_mask(op, in, s, mask_index, mask_given);
  if (op.mask_kind.window < 0) {
    in.reject("c10", fmt::format("the window is {}", op.mask_kind.window),
              "0 sees the query itself");
  }
  if (op.attn_logit_softcap && !(*op.attn_logit_softcap > 0)) {
    in.reject("c10", fmt::format("the softcap is {}", op.attn_logit_softcap->value),
              "it is positive; leave it out for no cap");
  }
  return s;
}

namespace {

// q's type with heads as wide as those of v.
Type result_type(const op::Attention& op, const Type& q, AttentionLayout layout) {
  Type out = q;
  const Dim width = op.value_width();
  out.dims.back() = layout == AttentionLayout::Fused ? Dim(op.num_heads) * width : width;
  return out;
}

}  // namespace

Inferred infer(const op::Attention& op, const InferContext& in) {
  const AttentionShape s = check_attention(op, in, 3, in.operands.size() > 3);
  return std::vector<Type>{result_type(op, in[0], s.layout),
                           Type{at_least_f32(in[0].dtype), {s.batch, op.num_heads, s.queries}}};
}

Inferred infer(const op::AttentionBackward& op, const InferContext& in) {
  // The last of the optional operands may be lse and mean, which have three axes: a mask has not.
  // So it is judged by what is left.
  const bool takes_mask = op.mask_kind.has_operand();
  const std::size_t lse_index = takes_mask ? 5 : 4;
  const bool instead = in.operands.size() == 6 && in[4].rank() != 3;  // of lse
  const bool mask_given = takes_mask ? in.operands.size() > 4 : instead || in.operands.size() > 6;
  const AttentionShape s = check_attention(op.forward(), in, 4, mask_given);
  if (const Type out = result_type(op.forward(), in[0], s.layout); in[3] != out) {
    in.reject("c11",
              fmt::format("dy is {}, but attention gives {}", in[3].to_string(), out.to_string()));
  }
  const Type statistics{at_least_f32(in[0].dtype), {s.batch, op.num_heads, s.queries}};
  for (std::size_t k = lse_index; k < in.operands.size(); ++k) {
    if (in[k] == statistics) continue;
    in.reject("c12", fmt::format("{} is {} instead of {}", k == lse_index ? "lse" : "mean",
                                 in[k].to_string(), statistics.to_string()));
  }
  std::vector<Type> gradients = {in[0], in[1], in[2]};
  if (op.mask_kind.kind == MaskKind::Kind::Bias) gradients.push_back(in[4]);
  return gradients;
}

}  // namespace ricci
