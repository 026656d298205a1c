#include "schedule/not_positive.h"

#include "ricci/op/ops.h"

namespace ricci::schedule {
namespace {

const Node& maker(const Graph& graph, ValueId value) { return graph.nodes()[value.node]; }

// The maximum of x along some axes, each element beside those it is the maximum of.
bool is_maximum_of(const Graph& graph, ValueId value, ValueId x) {
  const Node* node = &maker(graph, value);
  if (node->op.is<op::Expand>()) node = &maker(graph, node->operands[0]);
  const auto* reduce = node->op.as<op::Reduce>();
  return reduce != nullptr && reduce->op == ReduceKind::Max && reduce->keep_dim &&
         node->operands[0] == x;
}

bool is_magnitude(const Graph& graph, ValueId value) {
  const auto* unary = maker(graph, value).op.as<op::Unary>();
  return unary != nullptr && !is_complex(graph.type(value).dtype) &&
         (unary->kind == UnaryKind::Abs || unary->kind == UnaryKind::Square);
}

}  // namespace

bool never_positive(const Graph& graph, ValueId value) {
  const Node& node = maker(graph, value);
  if (const auto* unary = node.op.as<op::Unary>()) {
    return unary->kind == UnaryKind::Neg && is_magnitude(graph, node.operands[0]);
  }
  const auto* binary = node.op.as<op::Binary>();
  return binary != nullptr && binary->kind == BinaryKind::Sub &&
         is_maximum_of(graph, node.operands[1], node.operands[0]);
}

}  // namespace ricci::schedule
