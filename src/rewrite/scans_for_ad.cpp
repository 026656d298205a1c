#include "ricci/build/build.h"
#include "ricci/rewrite/control_flow.h"

#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

Dims with_front(Dim first, const Dims& dims) {
  Dims out{std::move(first)};
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

Value repeated(Value v, const Dim& length) {
  return broadcast_to(reshape_to(v, with_front(1, v.dims())), with_front(length, v.dims()));
}

std::vector<Value> results_of(const NodeVisit& v, const op::Scan& op,
                              std::span<const Value> operands) {
  NodeSpec spec{.op = Op(op), .bodies = v.node.bodies, .wanted = v.node.wanted};
  for (const Value& x : operands) spec.operands.push_back(x.id());
  const NodeId id = v.graph().add(std::move(spec));
  std::vector<Value> results;
  for (std::uint32_t r = 0; r < v.node.types.size(); ++r) {
    results.push_back(v.node.wanted[r] ? v.graph().value({id, r}) : Value());
  }
  return results;
}

// Bodies take bcasts before xs, so a bcast that becomes an xs stays where it is.
NewResults without_bcasts(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::Scan>();
  if (op == nullptr || op->num_bcast == 0) return std::nullopt;
  std::vector<Value> operands = v.operands;
  for (std::int64_t i = 0; i < op->num_bcast; ++i) {
    Value& bcast = operands[static_cast<std::size_t>(op->num_carry + i)];
    bcast = repeated(bcast, op->length);
  }
  op::Scan over_rows = *op;
  over_rows.num_xs += op->num_bcast;
  over_rows.num_bcast = 0;
  return results_of(v, over_rows, operands);
}

// [scan-ckpt-forward-value] The row the last step made: the last one, or the first in reverse.
Value last_carry(const op::Scan& op, Value init, Value trajectory) {
  if (op.length.is(0)) return init;
  Dim at = op.reverse ? Dim(0) : trajectory.dims()[0] - Dim(1);
  if (!op.length.is_static()) {
    // A loop that may turn out to be empty ends where it began.
    const Value start = reshape_to(init, with_front(1, init.dims()));
    trajectory = op.reverse ? concat({trajectory, start}, {.axis = 0})
                            : concat({start, trajectory}, {.axis = 0});
    if (!op.reverse) at = at + Dim(1);
  }
  return reshape_to(narrow(trajectory, {.axis = 0, .start = at, .len = 1}), init.dims());
}

NewResults with_trajectory(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::Scan>();
  if (op == nullptr || op->save_trajectory) return std::nullopt;
  op::Scan keeping = *op;
  keeping.save_trajectory = true;
  std::vector<Value> results = results_of(v, keeping, v.operands);
  for (std::size_t k = 0; std::cmp_less(k, op->num_carry); ++k) {
    if (results[k].valid()) results[k] = last_carry(*op, v.operands[k], results[k]);
  }
  return results;
}

}  // namespace

PassResult materialize_bcasts_for_ad(const Graph& graph) {
  return replace_nodes(graph, "materialize_bcasts_for_ad", without_bcasts);
}

PassResult convert_scans_for_ad(const Graph& graph) {
  return replace_nodes(graph, "convert_scans_for_ad", with_trajectory);
}

}  // namespace ricci
