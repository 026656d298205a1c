#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/control_flow.h"

#include "op/loop_layout.h"
#include "rewrite/replace_nodes.h"
#include "rule/control/loop_rewriting.h"

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
  const ScanLayout layout(*op);
  for (std::size_t k = layout.first_bcast(); k < layout.first_x(); ++k) {
    operands[k] = repeated(operands[k], op->length);
  }
  op::Scan over_rows = *op;
  over_rows.num_xs += op->num_bcast;
  over_rows.num_bcast = 0;
  return results_of(v, over_rows, operands);
}

// [scan-ckpt-forward-value]
NewResults with_trajectory(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::Scan>();
  if (op == nullptr || op->save_trajectory) return std::nullopt;
  op::Scan keeping = *op;
  keeping.save_trajectory = true;
  std::vector<Value> results = results_of(v, keeping, v.operands);
  for (std::size_t k = 0; k < ScanLayout(*op).carries; ++k) {
    if (results[k].valid()) results[k] = rule::last_carry(*op, v.operands[k], results[k]);
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
