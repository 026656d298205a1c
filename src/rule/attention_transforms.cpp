// Reverse rule and batching of attention.
#include "ricci/compiler/rule/expand.h"

#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

op::AttentionBackward backward_of(const op::Attention& op) {
  return {.num_heads = op.num_heads,
          .head_dim = op.head_dim,
          .mask_kind = op.mask_kind,
          .score_scale = op.score_scale,
          .attn_logit_softcap = op.attn_logit_softcap,
          .num_kv_heads = op.num_kv_heads,
          .layout = op.layout,
          .value_dim = op.value_dim};
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
  std::vector<bool> wanted{c.needs(0), c.needs(1), c.needs(2)};
  if (bias) wanted.push_back(c.needs(3));
  Cotangents out = add_wanted(c.graph(), Op(backward_of(op)), operands, std::move(wanted));
  out.resize(c.size());
  return out;
}

namespace {

// Operand k, one of q, k, v, dy, with the batch merged into its own; rank 2 has none yet.
Value in_batch(const VmapContext& c, std::size_t k) {
  return c.type(k).rank() == 2 ? c.lifted(k) : c.folded(k);
}

// A mask has one entry per example or one for all of them, [N or 1, …] → [B·N or 1, …].
Value mask_in_batch(const VmapContext& c, std::size_t k, const Dim& examples) {
  Dims dims = c.type(k).dims;
  if (!c.batched(k) && dims[0].is(1)) return c[k];
  dims[0] = examples;
  const Value all = broadcast_to(c.lifted(k), c.with_batch(dims));
  dims[0] = c.batch() * examples;
  return reshape_to(all, std::move(dims));
}

// N of the operands as attention counts them: 1 in rank 2.
Dim examples_in(const VmapContext& c) { return c.type(0).rank() == 2 ? Dim(1) : c.type(0).dims[0]; }

}  // namespace

BatchedValues batch(const op::Attention& op, const VmapContext& c) {
  std::vector<Value> operands{in_batch(c, 0), in_batch(c, 1), in_batch(c, 2)};
  if (c.size() > 3) operands.push_back(mask_in_batch(c, 3, examples_in(c)));
  return c.unfolded(c.emit(Op(op), operands));
}

namespace {

// [N, H, S_q, S_k]: what a bias broadcasts to in one example.
Dims score_dims(const op::AttentionBackward& op, const VmapContext& c) {
  const AttentionLayout layout = op.layout.value_or(AttentionLayout::Fused);
  const auto length = [&](std::size_t k) {
    const Dims& dims = c.type(k).dims;
    return layout == AttentionLayout::Bshd ? dims[1] : dims[dims.size() - 2];
  };
  return {examples_in(c), op.num_heads, length(0), length(1)};
}

// A bias for all examples is written out, so that its gradient can be summed over those of one
// element of the batch only.
BatchedValues batch_with_bias_gradient(const op::AttentionBackward& op, const VmapContext& c,
                                       std::vector<Value> operands) {
  const Type& bias = c.type(4);
  if (!bias.dims[0].is(1) || examples_in(c).is(1)) {
    operands[4] = c.folded(4);
    return c.unfolded(c.emit(Op(op), operands));
  }
  const Dims scores = score_dims(op, c);
  Dims folded = scores;
  folded[0] = c.batch() * folded[0];
  operands[4] = reshape_to(broadcast_to(c.lifted(4), c.with_batch(scores)), std::move(folded));
  BatchedValues out = c.emit(Op(op), operands);
  const Value each = reshape_to(out[3].value, c.with_batch(scores));
  out[3].value = unbroadcast(each, bias.with(c.with_batch(bias.dims)));
  return c.unfolded(std::move(out));
}

}  // namespace

BatchedValues batch(const op::AttentionBackward& op, const VmapContext& c) {
  std::vector<Value> operands{in_batch(c, 0), in_batch(c, 1), in_batch(c, 2), in_batch(c, 3)};
  const bool takes_mask = op.mask_kind.has_operand();
  if (takes_mask) operands.push_back(mask_in_batch(c, 4, examples_in(c)));
  const std::size_t lse = operands.size();
  for (std::size_t k = lse; k < c.size(); ++k) operands.push_back(c.folded(k));
  const std::vector<bool>& wanted = c.node().wanted;
  if (wanted.size() > 3 && wanted[3]) return batch_with_bias_gradient(op, c, std::move(operands));
  return c.unfolded(c.emit(Op(op), operands));
}

}  // namespace ricci::rule
