// Reverse rule and batching of attention.
#include "ricci/rule/expand.h"

#include "rule/batch_rules.h"
#include "rule/derivative_parts.h"
#include "rule/vjp_rules.h"

namespace ricci::rule {
namespace {

op::AttentionBackward backward_of(const op::Attention& op) {
  return {.num_heads = op.num_heads,
          .head_dim = op.head_dim,
          .mask_kind = op.mask_kind,
          .score_scale = op.score_scale,
          .attn_logit_softcap = op.attn_logit_softcap,
          .num_kv_heads = op.num_kv_heads,
          .layout = op.layout};
}

}  // namespace

// Keeps the rows' log-sum-exp, so that the backward pass need not find it again.
ForwardResults forward_keeping(const op::Attention& op, const ForwardContext& c) {
  NodeSpec spec{.op = Op(op), .wanted = {true, true}};
  for (const Value& v : c.operands) spec.operands.push_back(v.id());
  const NodeId id = c.graph.add(std::move(spec));
  const Value lse = c.graph.value({id, 1});
  return {{c.graph.value({id, 0}), c.node.wanted[1] ? lse : Value()}, {lse}};
}

Cotangents vjp(const op::Attention& op, const VjpContext& c) {
  if (c.cotangent(1).valid()) {
    // attention_backward takes no cotangent of the log-sum-exp
    return c.through([&](Graph& g, std::span<const Value> operands) {
      Node node = c.node();
      node.wanted = {c.cotangent(0).valid(), true};
      return expand_node(node, {operands.begin(), operands.end()}, g);
    });
  }
  std::vector<Value> operands{c[0], c[1], c[2], c.cotangent()};
  if (op.mask_kind.has_operand()) operands.push_back(c[3]);
  operands.push_back(c.residuals()[0]);
  const bool bias = op.mask_kind.kind == MaskKind::Kind::Bias;
  NodeSpec spec{.op = Op(backward_of(op)), .wanted = {c.needs(0), c.needs(1), c.needs(2)}};
  if (bias) spec.wanted.push_back(c.needs(3));
  for (const Value& v : operands) spec.operands.push_back(v.id());
  const NodeId id = c.graph().add(std::move(spec));
  Cotangents out = c.none();
  for (std::uint32_t k = 0; k < (bias ? 4U : 3U); ++k) {
    if (c.needs(k)) out[k] = c.graph().value({id, k});
  }
  return out;
}

}  // namespace ricci::rule
