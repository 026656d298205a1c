#include "schedule/predicate.h"

#include <algorithm>

#include "ricci/op/ops.h"

#include "rewrite/inline_control.h"
#include "rewrite/replace_nodes.h"
#include "schedule/lower_for.h"

namespace ricci::schedule {
namespace {

bool may_fault(const Lowering& lowering) {
  const bool outside = lowering.indirect && !lowering.indirect->clamp;
  return outside ||
         (lowering.form == Lowering::Form::Pointwise && loop::is_partial(lowering.instr));
}

std::int64_t elements(const Graph& graph, const Node& node, std::int64_t limit) {
  std::int64_t most = 0;
  for (const Type& t : node.types) most = std::max(most, t.numel().value_or(limit));
  for (const ValueId v : node.operands) {
    most = std::max(most, graph.type(v).numel().value_or(limit));
  }
  return std::min(most, limit);
}

// How many elements a body goes through, up to a limit; that for one that has to stay a body.
std::int64_t work_of(const Graph& body, const KernelShape& shape, std::int64_t limit) {
  std::int64_t total = 0;
  for (const Node& node : body.nodes()) {
    if (node.op.op_class() == OpClass::Leaf) continue;
    if (!node.bodies.empty() || node.op.has(Trait::Random)) return limit;
    const Lowering lowering = lower_for(shape, body, node);
    if (lowering.form == Lowering::Form::Call || may_fault(lowering)) return limit;
    if (lowering.form != Lowering::Form::View) total += elements(body, node, limit);
    if (total >= limit) return limit;
  }
  return total;
}

}  // namespace

Change predicate_branches(const Graph& graph, const Target& target) {
  const std::int64_t limit = target.short_branch();
  if (limit == 0) return std::nullopt;
  const auto work = [&](const Graph* body) { return work_of(*body, target.kernel_shape(), limit); };
  const auto concerns = [&](const Graph&, const Node& node) {
    return node.op.is<op::If>() && work(node.body("then")) + work(node.body("else")) < limit;
  };
  return replace_where(graph, "predicate_branches", concerns, both_branches);
}

}  // namespace ricci::schedule
