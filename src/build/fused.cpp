#include "ricci/compat/fused.h"

#include <algorithm>

#include "build/aliases.h"

namespace ricci {

std::array<Value, 2> residual_norm_pair(ResidualNorm kind, std::span<const Value> operands,
                                        op::FusedResidualLn attrs, std::source_location loc) {
  if (operands.empty()) {
    throw UserError(ErrorCode::Attr, "'residual_norm_pair' needs at least one operand");
  }
  const Op op = kind == ResidualNorm::Ln
                    ? Op(attrs)
                    : Op(op::FusedResidualRmsNorm{.has_bias = attrs.has_bias, .eps = attrs.eps});
  Graph& graph = operands[0].graph();
  const std::vector<Value> results = graph.add_node(op, operands, {}, loc);
  graph.set_wanted(results[1].id(), true);
  return {results[1], results[0]};
}

namespace {

// residual_norm_pair x, residual, (bias), gamma, beta {kind = ln | rms, has_bias, eps}
std::vector<Value> pair_alias(AliasCall& call) {
  const ResidualNorm kind =
      take_enum<ResidualNorm>(call, "residual_norm_pair", "kind").value_or(ResidualNorm::Ln);
  const auto pair = residual_norm_pair(kind, call.operands, alias_attrs<op::FusedResidualLn>(call));
  return {pair.begin(), pair.end()};
}

}  // namespace

AliasList fused_aliases() {
  return {
      {"residual_norm_pair", {OpKind::FusedResidualLn, OpKind::FusedResidualRmsNorm}, pair_alias},
      {"transformer_block", {OpKind::LlamaDecoderBlock}, as_op<op::LlamaDecoderBlock>}};
}

}  // namespace ricci
