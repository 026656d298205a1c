// Residual sums and the norms behind them.
#include <algorithm>
#include <optional>
#include <set>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/fuse.h"

#include "rewrite/fusions.h"

namespace ricci {
namespace {

struct ResidualSum {
  ValueId x;
  ValueId residual;
  std::optional<ValueId> bias;
};

// x + residual, or (x + residual) + bias where nothing else reads the sum in between.
std::optional<ResidualSum> residual_sum_of(const Uses& uses, const Node& node) {
  if (!is_binary_node(node, BinaryKind::Add)) return std::nullopt;
  if (is_plain_sum(uses, node)) return ResidualSum{node.operands[0], node.operands[1], {}};
  const Type& type = node.types[0];
  for (const std::size_t k : {0U, 1U}) {
    const ValueId inner = node.operands[k];
    const ValueId bias = node.operands[1 - k];
    if (type.rank() < 2 || uses.type(bias) != Type{type.dtype, {type.dims.back()}}) continue;
    if (!uses.once(inner) || uses.type(inner) != type || !is_plain_sum(uses, uses.node(inner))) {
      continue;
    }
    const Node& sum = uses.node(inner);
    return ResidualSum{sum.operands[0], sum.operands[1], bias};
  }
  return std::nullopt;
}

template <class Norm, class Fused>
std::vector<Fusion> find_residual_norms(const Graph& graph) {
  const Uses uses(graph);
  std::vector<Fusion> found;
  std::set<NodeId> sums;  // each is fused once
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    const auto* norm = node.op.as<Norm>();
    if (norm == nullptr || !is_last_axis(norm->axis, node.types[0])) continue;
    const ValueId total = node.operands[0];
    const auto sum = residual_sum_of(uses, uses.node(total));
    if (!sum || !dtypes::floats.has(node.types[0].dtype)) continue;
    std::vector<ValueId> in = {sum->x, sum->residual};
    if (sum->bias) in.push_back(*sum->bias);
    in.insert(in.end(), node.operands.begin() + 1, node.operands.end());
    const Op fused(Fused{.has_bias = sum->bias.has_value(), .eps = norm->eps});
    const auto build = [=](Rebuilder& r) {
      std::vector<Value> operands;
      for (const ValueId v : in) operands.push_back(r.value(v));
      return r.to().add_node(fused, operands);
    };
    if (uses.once(total)) {
      found.push_back({id, {{id, 0}}, [=](Rebuilder& r) { return std::vector{build(r)[0]}; }});
      continue;
    }
    // [residual-norm-two-outputs]: where the sum is read again it is a result too, and all is made
    // where the sum was: what else the norm reads has to be there by then.
    const bool early =
        std::ranges::all_of(node.operands.begin() + 1, node.operands.end(), [&](ValueId v) {
          return v.node < total.node || uses.as<op::Input>(v) != nullptr ||
                 uses.as<op::Param>(v) != nullptr;
        });
    if (!early || !sums.insert(total.node).second) continue;
    found.push_back({total.node, {total, {id, 0}}, [=](Rebuilder& r) {
                       const std::vector<Value> both = build(r);
                       r.to().set_wanted(both[1].id(), true);
                       return std::vector{both[1], both[0]};
                     }});
  }
  return found;
}

// A norm whose rows are only counted differently by what follows: rows stay rows.
std::vector<Fusion> find_norm_reshapes(const Graph& graph) {
  const Uses uses(graph);
  std::vector<Fusion> found;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!node.op.is<op::Reshape>()) continue;
    const ValueId normed = node.operands[0];
    const auto* norm = uses.as<op::RmsNorm>(normed);
    const Dims& now = node.types[0].dims;
    const Type& before = uses.type(normed);
    if (norm == nullptr || !uses.once(normed) || !is_last_axis(norm->axis, before)) continue;
    if (now.empty() || now.size() >= before.rank() || !(now.back() == before.dims.back())) continue;
    const bool is_output = std::ranges::count(graph.outputs(), ValueId{id, 0}) > 0;
    if (is_output) continue;
    found.push_back({id, {{id, 0}}, [=, in = uses.node(normed).operands](Rebuilder& r) {
                       return std::vector{rms_norm(reshape_to(r.value(in[0]), now), r.value(in[1]),
                                                   r.value(in[2]), {.eps = norm->eps})};
                     }});
  }
  return found;
}

}  // namespace

PassResult fuse_residual_ln(const Graph& graph) {
  return make_fusions(graph, "fuse_residual_ln",
                      find_residual_norms<op::LayerNorm, op::FusedResidualLn>);
}

PassResult fuse_residual_rms_norm(const Graph& graph) {
  return make_fusions(graph, "fuse_residual_rms_norm",
                      find_residual_norms<op::RmsNorm, op::FusedResidualRmsNorm>);
}

PassResult fuse_rms_norm_reshape(const Graph& graph) {
  return make_fusions(graph, "fuse_rms_norm_reshape", find_norm_reshapes);
}

}  // namespace ricci
