#include "model/lower_blocks.h"

#include <array>

#include "rule/block_parts.h"

namespace ricci::model {
namespace {

using Lowering = std::vector<Value> (*)(const Op&, const LowerContext&);

template <class T>
std::vector<Value> run(const Op& op, const LowerContext& c) {
  return lower(*op.as<T>(), c);
}

constexpr auto Lowerings = std::to_array<Lowering>({
#define RICCI_OP(Type, builder) nullptr,
#define RICCI_BLOCK(Type, builder) run<op::Type>,
#include "ricci/op/list.def"
});

Value fused(std::optional<UnaryKind> activation, const LowerContext& c) {
  return fused_matmul_bias_act(c.operands[0], c.operands[1], c.operands[2],
                               {.activation = activation});
}

Value in_primitives(std::optional<UnaryKind> activation, const LowerContext& c) {
  // A matrix product wants rank 2: a vector x is one row.
  Value x = c.operands[0];
  const Dims dims = x.dims();
  if (dims.size() == 1) x = reshape(x, {.new_shape = {1, dims[0]}});
  Value y = matmul(x, c.operands[1]);
  if (dims.size() == 1) y = reshape(y, {.new_shape = {y.dims()[1]}});
  if (c.operands.size() == 3) y = add(y, c.operands[2]);
  return activation ? ricci::activation(*activation, y) : y;
}

rule::Fused fused_under(FusionPolicy policy) {
  return policy == FusionPolicy::Direct ? rule::Fused::Yes : rule::Fused::No;
}

}  // namespace

std::vector<Value> lower(const op::Linear& op, const LowerContext& c) {
  const bool fuse =
      c.policy == FusionPolicy::Direct && c.operands.size() == 3 && c.operands[0].rank() >= 2;
  return {fuse ? fused(op.activation, c) : in_primitives(op.activation, c)};
}

std::vector<Value> lower(const op::LinearFused& op, const LowerContext& c) {
  const bool fuse = c.policy != FusionPolicy::ForAutodiff && c.operands[0].rank() >= 2;
  return {fuse ? fused(op.activation, c) : in_primitives(op.activation, c)};
}

std::vector<Value> lower(const op::SharedLinearPair& op, const LowerContext& c) {
  return rule::in_ops(op, c.operands, c.wanted, fused_under(c.policy));
}
std::vector<Value> lower(const op::Swiglu& op, const LowerContext& c) {
  return rule::in_ops(op, c.operands, c.wanted, fused_under(c.policy));
}
std::vector<Value> lower(const op::ResidualRmsNorm& op, const LowerContext& c) {
  return rule::in_ops(op, c.operands, c.wanted, fused_under(c.policy));
}
std::vector<Value> lower(const op::DepthwiseConv1dCausal& op, const LowerContext& c) {
  return rule::in_ops(op, c.operands, c.wanted, fused_under(c.policy));
}
std::vector<Value> lower(const op::LlamaDecoderBlock& op, const LowerContext& c) {
  return rule::in_ops(op, c.operands, c.wanted, fused_under(c.policy));
}
std::vector<Value> lower(const op::Qwen35MtpHead& op, const LowerContext& c) {
  return rule::in_ops(op, c.operands, c.wanted, fused_under(c.policy));
}

std::vector<Value> lower_block(const Op& op, const LowerContext& c) {
  const Lowering lowering = Lowerings[static_cast<std::size_t>(op.kind())];
  check_internal(lowering != nullptr, "only blocks are lowered here");
  return lowering(op, c);
}

}  // namespace ricci::model
