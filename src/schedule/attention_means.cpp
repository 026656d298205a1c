#include "schedule/attention_means.h"

#include <algorithm>

#include "ricci/build/build.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/attention.h"

#include "rewrite/replace_nodes.h"

namespace ricci::schedule {
namespace {

// Does the node read the log-sum-exp of a forward pass over the same operands, and no means yet?
bool follows_forward(const Graph& graph, const Node& node) {
  const auto* backward = node.op.as<op::AttentionBackward>();
  const std::size_t lse = backward != nullptr && backward->mask_kind.has_operand() ? 5 : 4;
  if (backward == nullptr || node.operands.size() != lse + 1) return false;
  const ValueId statistics = node.operands[lse];
  const Node& made_by = graph.node(statistics.node);
  const auto* forward = made_by.op.as<op::Attention>();
  if (forward == nullptr || statistics.result != 1) return false;
  if (*forward != backward->forward()) return false;
  std::vector<ValueId> same(node.operands.begin(), node.operands.begin() + 3);
  if (lse == 5) same.push_back(node.operands[4]);
  return std::ranges::equal(same, made_by.operands);
}

// [batch, H, S_q] of a result and its gradient, however heads lie in them, in a wider dtype.
Value mean_of(const op::AttentionBackward& op, Value out, Value dy, DType wide) {
  Value product = cast(out, {.to = wide}) * cast(dy, {.to = wide});
  const AttentionLayout layout = op.layout.value_or(AttentionLayout::Fused);
  if (layout == AttentionLayout::Fused) {
    const Dims d = product.dims();
    const Dim batch = d.size() == 3 ? d[0] : Dim(1);
    const std::int64_t width = op.forward().value_width();
    product = reshape(product, {.new_shape = {batch, d[d.size() - 2], op.num_heads, width}});
  }
  const Value mean = reduce(product, {.op = ReduceKind::Sum, .axes = {3}});
  return layout == AttentionLayout::Bhsd ? mean : transpose(mean, {.perm = {0, 2, 1}});
}

}  // namespace

Change attention_means(const Graph& graph) {
  return replace_where(
      graph, "attention_means", follows_forward, [](const NodeVisit& v) -> NewResults {
        const auto& op = *v.node.op.as<op::AttentionBackward>();
        // It may be that nobody wanted it before.
        const ValueId out{v.operands.back().id().node, 0};
        v.graph().set_wanted(out, true);
        NodeSpec spec{.op = v.node.op, .operands = {}, .wanted = v.node.wanted};
        for (const Value& operand : v.operands) spec.operands.push_back(operand.id());
        const DType wide = v.operands.back().dtype();
        spec.operands.push_back(mean_of(op, v.graph().value(out), v.operands[3], wide).id());
        const NodeId id = v.graph().add(std::move(spec));
        std::vector<Value> results;
        for (std::uint32_t r = 0; r < v.node.types.size(); ++r) {
          results.push_back(v.node.wanted[r] ? v.graph().value({id, r}) : Value());
        }
        return results;
      });
}

}  // namespace ricci::schedule
