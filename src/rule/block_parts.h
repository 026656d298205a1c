// Blocks in ops, as chains of primitives or with fused ops where there are some: what expansions
// and fusion policies have in common.
#pragma once

#include <span>
#include <vector>

#include "ricci/ir/graph.h"
#include "ricci/op/block.h"

namespace ricci::rule {

/// May a block become fused ops?
enum class Fused : bool { No, Yes };

/// One value per result of the block; invalid where it is not wanted.
using BlockResults = std::vector<Value>;

[[nodiscard]] BlockResults in_ops(const op::SharedLinearPair& op, std::span<const Value> operands,
                                  const std::vector<bool>& wanted, Fused fused);
[[nodiscard]] BlockResults in_ops(const op::Swiglu& op, std::span<const Value> operands,
                                  const std::vector<bool>& wanted, Fused fused);
[[nodiscard]] BlockResults in_ops(const op::ResidualRmsNorm& op, std::span<const Value> operands,
                                  const std::vector<bool>& wanted, Fused fused);
[[nodiscard]] BlockResults in_ops(const op::DepthwiseConv1dCausal& op,
                                  std::span<const Value> operands, const std::vector<bool>& wanted,
                                  Fused fused);
[[nodiscard]] BlockResults in_ops(const op::LlamaDecoderBlock& op, std::span<const Value> operands,
                                  const std::vector<bool>& wanted, Fused fused);
[[nodiscard]] BlockResults in_ops(const op::Qwen35MtpHead& op, std::span<const Value> operands,
                                  const std::vector<bool>& wanted, Fused fused);

}  // namespace ricci::rule
