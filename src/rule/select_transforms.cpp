// Derivatives and batching of the ops that choose elements by their order. Values carry a
// derivative to where the indices say they came from; indices carry none.
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

struct Chosen {
  Value values;
  Value indices;
};

// The node with its indices, whether it asks for them or not.
Chosen with_indices(Graph& graph, const Node& node, Value x) {
  const bool values = node.wanted[0];
  const NodeId id =
      graph.add({.op = node.op, .operands = {x.id()}, .bodies = {}, .wanted = {values, true}});
  return {values ? graph.value({id, 0}) : Value(), graph.value({id, 1})};
}

ForwardResults keeping_indices(const ForwardContext& c) {
  const Chosen out = with_indices(c.graph, c.node, c.operands[0]);
  return {{out.values, c.node.wanted[1] ? out.indices : Value()}, {out.indices}};
}

Cotangents put_back(Axis axis, const VjpContext& c) {
  if (!c.cotangent(0).valid()) return c.none();  // indices may be floats, yet have no derivative
  const Dim size = c[0].dims()[axis.index()];
  return {
      scatter_add_along_axis(c.cotangent(0), c.residuals()[0], {.axis = axis, .axis_size = size})};
}

Tangents take_chosen(Axis axis, JvpContext& c) {
  if (!c.node().wanted[0]) return c.none();
  if (!c.node().wanted[1]) {
    const Chosen out = with_indices(c.graph(), c.node(), c[0]);
    c.give_results({out.values, Value()});
    return {take_along_axis(c.tangent(0), out.indices, {.axis = axis}), Value()};
  }
  return {take_along_axis(c.tangent(0), c.result(1), {.axis = axis}), Value()};
}

Axis last_axis(Value x) { return static_cast<std::int64_t>(x.rank()) - 1; }

}  // namespace

ForwardResults forward_keeping(const op::Sort&, const ForwardContext& c) {
  return keeping_indices(c);
}
Cotangents vjp(const op::Sort& op, const VjpContext& c) { return put_back(op.axis, c); }
Tangents jvp(const op::Sort& op, JvpContext& c) { return take_chosen(op.axis, c); }

BatchedValues batch(const op::Sort& op, const VmapContext& c) {
  op::Sort wide = op;
  wide.axis = shifted(op.axis);
  return c.emit(Op(wide), std::array{c[0]});
}

ForwardResults forward_keeping(const op::TopK&, const ForwardContext& c) {
  return keeping_indices(c);
}
Cotangents vjp(const op::TopK&, const VjpContext& c) { return put_back(last_axis(c[0]), c); }
Tangents jvp(const op::TopK&, JvpContext& c) { return take_chosen(last_axis(c[0]), c); }

BatchedValues batch(const op::TopK& op, const VmapContext& c) {
  return c.emit(Op(op), std::array{c[0]});
}

BatchedValues batch(const op::ArgReduce& op, const VmapContext& c) {
  op::ArgReduce wide = op;
  wide.axis = shifted(op.axis);
  return c.emit(Op(wide), std::array{c[0]});
}

}  // namespace ricci::rule
