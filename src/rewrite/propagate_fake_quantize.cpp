// [quant-propagate-correct] A fake_quantize behind another that has done its work already.
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/op/ops.h"

#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

// Where an axis of a move's result is in its operand: the same elements have the same index along
// it. Nothing where that is not so.
std::optional<Axis> axis_before(const Node& move, const Graph& graph, Axis axis) {
  if (const auto* t = move.op.as<op::Transpose>()) return t->perm[axis.index()];
  if (!move.op.is<op::Reshape>()) return std::nullopt;
  const Dims& after = move.types[0].dims;
  const Dims& before = graph.type(move.operands[0]).dims;
  const std::span all(after);
  const Dim outer = product(all.first(axis.index()));
  const Dim inner = product(all.subspan(axis.index() + 1));
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::span old(before);
    const bool same = before[i] == after[axis.index()] && product(old.first(i)) == outer &&
                      product(old.subspan(i + 1)) == inner;
    if (same) return Axis(static_cast<std::int64_t>(i));
  }
  return std::nullopt;
}

bool keeps_all(const Op& op) { return op.is<op::Reshape>() || op.is<op::Transpose>(); }

// Gives some of the numbers, or zero, in the place of others.
bool gives_some(const Op& op) {
  if (const auto* pool = op.as<op::Pool>()) return pool->kind == ReduceKind::Max;
  const auto* unary = op.as<op::Unary>();
  return (unary != nullptr && unary->kind == UnaryKind::Relu) || op.is<op::Narrow>();
}

// The axis of relu, pooling and slices is that of their operand. A slice of the axis itself leaves
// out some of the scales.
bool keeps_axis(const Node& node, Axis axis) {
  const auto* narrow = node.op.as<op::Narrow>();
  if (narrow != nullptr) return narrow->axis != axis;
  return !node.op.is<op::Pool>() || axis.index() < 2;
}

class Redundancy {
 public:
  Redundancy(const Graph& graph, const QuantPropagationOptions& options)
      : graph_(graph), options_(options) {}

  // Is what the node rounds rounded already?
  [[nodiscard]] bool of(const Node& outer) const {
    const auto* op = outer.op.as<op::FakeQuantize>();
    if (op == nullptr || op->scale_mode == ScaleMode::Ema) return false;
    if (outer.wanted.size() > 1 && outer.wanted[1]) return false;  // someone reads the scales
    op::FakeQuantize wanted = *op;
    for (ValueId at = outer.operands[0];;) {
      const Node& node = graph_.node(at.node);
      if (const auto* inner = node.op.as<op::FakeQuantize>()) {
        return at.result == 0 && *inner == wanted && same_state(outer, node);
      }
      if (!step(node, *op, wanted)) return false;
      at = node.operands[0];
    }
  }

 private:
  [[nodiscard]] static bool same_state(const Node& a, const Node& b) {
    return a.operands.size() == b.operands.size() &&
           (a.operands.size() < 2 || a.operands[1] == b.operands[1]);
  }

  // Follows one op backwards; `wanted` is what the earlier fake_quantize has to be.
  [[nodiscard]] bool step(const Node& node, const op::FakeQuantize& op,
                          op::FakeQuantize& wanted) const {
    if (keeps_all(node.op)) {
      if (!wanted.axis) return true;
      // Groups are counted along every row: only one order of the elements has them.
      if (wanted.group) return false;
      wanted.axis = axis_before(node, graph_, *wanted.axis);
      return wanted.axis.has_value();
    }
    if (!gives_some(node.op)) return false;
    if (op.scale_mode != ScaleMode::Fixed && !options_.through_shrinking) return false;
    if (!wanted.axis) return true;
    return !wanted.group && keeps_axis(node, *wanted.axis);
  }

  const Graph& graph_;
  const QuantPropagationOptions& options_;
};

}  // namespace

QuantPropagation propagate_fake_quantize(const Graph& graph,
                                         const QuantPropagationOptions& options) {
  QuantPropagation out{unchanged(graph), 0};
  const auto in_bodies = [&](const Graph& body) {
    QuantPropagation inner = propagate_fake_quantize(body, options);
    out.removed += inner.removed;
    return std::move(inner.result);
  };
  const Redundancy redundancy(graph, options);
  PassResult result = replace_nodes(
      graph, "propagate_fake_quantize",
      [&](const NodeVisit& v) -> NewResults {
        // Asked of the old graph: a pair in front of this one may be gone in the new.
        if (!redundancy.of(graph.nodes()[v.id])) return std::nullopt;
        ++out.removed;
        std::vector<Value> results(v.node.types.size());
        results[0] = v.operands[0];
        return results;
      },
      in_bodies);
  out.result = std::move(result);
  return out;
}

}  // namespace ricci
