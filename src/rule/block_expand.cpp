// Blocks in the ops they stand for: what becomes of them where no fusion policy says otherwise.
#include "ricci/build/build.h"
#include "ricci/op/block.h"

#include "rule/block_parts.h"
#include "rule/tables/expand_rules.h"

namespace ricci::rule {
namespace {

std::vector<Value> expand_linear(std::optional<UnaryKind> act, const ExpandContext& c) {
  const Value x = c[0];
  // A matrix product wants rank 2: a vector is one row.
  const bool is_vector = x.rank() == 1;
  Value y = matmul(is_vector ? reshape_to(x, {1, x.dims()[0]}) : x, c[1]);
  if (is_vector) y = reshape_to(y, {y.dims()[1]});
  if (c.node.operands.size() == 3) y = add(y, c[2]);
  return {act ? activation(*act, y) : y};
}

}  // namespace

std::vector<Value> expand(const op::Linear& op, const ExpandContext& c) {
  return expand_linear(op.activation, c);
}
std::vector<Value> expand(const op::LinearFused& op, const ExpandContext& c) {
  return expand_linear(op.activation, c);
}

std::vector<Value> expand(const op::SharedLinearPair& op, const ExpandContext& c) {
  return in_ops(op, c.operands, c.node.wanted, Fused::No);
}
std::vector<Value> expand(const op::Swiglu& op, const ExpandContext& c) {
  return in_ops(op, c.operands, c.node.wanted, Fused::No);
}
std::vector<Value> expand(const op::ResidualRmsNorm& op, const ExpandContext& c) {
  return in_ops(op, c.operands, c.node.wanted, Fused::No);
}
std::vector<Value> expand(const op::DepthwiseConv1dCausal& op, const ExpandContext& c) {
  return in_ops(op, c.operands, c.node.wanted, Fused::No);
}
std::vector<Value> expand(const op::LlamaDecoderBlock& op, const ExpandContext& c) {
  return in_ops(op, c.operands, c.node.wanted, Fused::No);
}
std::vector<Value> expand(const op::Qwen35MtpHead& op, const ExpandContext& c) {
  return in_ops(op, c.operands, c.node.wanted, Fused::No);
}

}  // namespace ricci::rule
