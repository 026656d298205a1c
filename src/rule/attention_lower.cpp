// Attention and its derivative as calls: how heads lie in memory, and which keys a query sees.
#include <cmath>

#include "ricci/support/checked.h"
#include "ricci/type/tensor.h"

#include "rule/tables/lower_rules.h"

namespace ricci::rule {
namespace {

// A mask [batch, key] or [batch, head, query, key], with its sizes of 1 repeated.
std::array<std::int64_t, 4> mask_strides(const StaticDims& dims) {
  const auto strides = row_major_strides(dims);
  const auto stride = [&](std::size_t axis) { return dims[axis] == 1 ? 0 : strides[axis]; };
  if (dims.size() == 2) return {stride(0), 0, 0, stride(1)};
  return {stride(0), stride(1), stride(2), stride(3)};
}

loop::HeadStrides strides_of(AttentionLayout layout, std::int64_t heads, std::int64_t length,
                             std::int64_t width) {
  const std::int64_t all = checked_mul(checked_mul(heads, width), length);
  if (layout == AttentionLayout::Bhsd) return {all, width, length * width};
  return {all, heads * width, width};
}

// `next`: the operand behind those there always are.
loop::Attention attention(const op::Attention& op, const LowerContext& c, std::size_t next) {
  const StaticDims& q = c.operands[0];
  const AttentionLayout layout = op.layout.value_or(AttentionLayout::Fused);
  const std::size_t sequence = layout == AttentionLayout::Bshd ? 1 : q.size() - 2;
  loop::Attention a{
      .batch = layout == AttentionLayout::Fused && q.size() == 2 ? 1 : q[0],
      .heads = op.num_heads,
      .kv_heads = op.num_kv_heads.value_or(op.num_heads),
      .queries = q[sequence],
      .keys = c.operands[1][sequence],
      .width = op.head_dim,
      .value_width = op.value_width(),
      .scale =
          op.score_scale ? op.score_scale->value : 1 / std::sqrt(static_cast<double>(op.head_dim)),
      .cap = op.attn_logit_softcap ? op.attn_logit_softcap->value : 0,
      .mask = op.mask_kind,
  };
  a.q = strides_of(layout, a.heads, a.queries, a.width);
  a.k = strides_of(layout, a.kv_heads, a.keys, a.width);
  a.v = strides_of(layout, a.kv_heads, a.keys, a.value_width);
  a.out = strides_of(layout, a.heads, a.queries, a.value_width);
  if (op.mask_kind.has_operand()) {
    a.mask_operand = static_cast<std::int64_t>(next);
    a.mask_strides = mask_strides(c.operands[next]);
  }
  return a;
}

}  // namespace

Lowering lower(const op::Attention& op, const LowerContext& c) {
  return as_call(attention(op, c, 3));
}

Lowering lower(const op::AttentionBackward& op, const LowerContext& c) {
  loop::Attention a = attention(op.forward(), c, 4);
  a.pass = loop::Pass::Backward;
  const std::size_t lse = a.mask_operand >= 0 ? 5 : 4;
  if (c.operands.size() > lse) a.lse_operand = static_cast<std::int64_t>(lse);
  if (c.operands.size() > lse + 1) a.mean_operand = static_cast<std::int64_t>(lse + 1);
  return as_call(a);
}

}  // namespace ricci::rule
