#include "rule/guards.h"

#include "ricci/op/elementwise.h"
#include "ricci/op/leaf.h"

#include "rule/tables/eval_rules.h"

namespace ricci::rule {
namespace {

std::optional<double> number(const Graph& graph, ValueId v) {
  const auto* constant = graph.node(v.node).op.as<op::Constant>();
  if (constant == nullptr || graph.type(v).rank() != 0 || !is_float(graph.type(v).dtype)) return {};
  return constant->value.numbers<double>()[0];
}

// Does the comparison hold for a number in the place of operand `side`?
std::optional<bool> holds_for(const Graph& graph, const op::Compare& op, std::size_t side,
                              ValueId value, ValueId other) {
  const auto a = number(graph, value);
  const auto b = number(graph, other);
  if (!a || !b) return {};
  return side == 0 ? eval_compare(op.kind, *a, *b) : eval_compare(op.kind, *b, *a);
}

// P(z) for z = where(P(x), s, x), which is false when P(s) is, and for z = where(P(x), x, s), which
// is true when P(s) is.
std::optional<bool> outcome(const Graph& graph, const Node& condition, const Resolve& resolved) {
  const auto* compare = condition.op.as<op::Compare>();
  if (compare == nullptr) return {};
  for (std::size_t side = 0; side < 2; ++side) {
    const ValueId other = resolved(condition.operands[1 - side]);
    const Node& guarded = graph.node(resolved(condition.operands[side]).node);
    if (!guarded.op.is<op::Where>()) continue;
    const Node& asked = graph.node(resolved(guarded.operands[0]).node);
    if (!asked.op.is<op::Compare>() || !(asked.op == condition.op)) continue;
    if (resolved(asked.operands[1 - side]) != other) continue;
    const ValueId x = resolved(asked.operands[side]);
    for (const bool safe : {false, true}) {
      const ValueId kept = resolved(guarded.operands[safe ? 1 : 2]);
      const ValueId given = resolved(guarded.operands[safe ? 2 : 1]);
      if (kept == x && holds_for(graph, *compare, side, given, other) == safe) return safe;
    }
  }
  return {};
}

}  // namespace

std::optional<ValueId> always_chosen(const Graph& graph, const Node& node,
                                     const Resolve& resolved) {
  if (!node.op.is<op::Where>()) return {};
  const auto known = outcome(graph, graph.node(resolved(node.operands[0]).node), resolved);
  if (!known) return {};
  const ValueId chosen = resolved(node.operands[*known ? 1 : 2]);
  if (graph.type(chosen) != node.types[0]) return {};
  return chosen;
}

}  // namespace ricci::rule
