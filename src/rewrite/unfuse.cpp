#include "ricci/compiler/rewrite/unfuse.h"

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/control_flow.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/compiler/rule/expand.h"

#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

NewResults expanded(const NodeVisit& v) { return expand_node(v.node, v.operands, v.graph()); }

template <class... T>
bool is_one_of(const Op& op) {
  return (op.is<T>() || ...);
}

bool is_fused(const Op& op) {
  return is_one_of<op::FusedMatmulBiasAct, op::FusedResidualLn, op::FusedResidualRmsNorm,
                   op::FusedSwiglu, op::FusedAttentionBlock, op::FusedTransformerLayer,
                   op::LoraMatmul>(op);
}

// The expansion, with every loop in it written out.
NewResults expanded_over_time(const NodeVisit& v) {
  std::vector<Type> types;
  for (const Value& x : v.operands) types.push_back(x.type());
  std::vector<std::size_t> given;
  const BodyGraph whole = make_body(
      "expansion", types,
      [&](Graph& graph, std::span<const Value> inputs) {
        const std::vector<Value> all = expand_node(v.node, {inputs.begin(), inputs.end()}, graph);
        std::vector<Value> outputs;
        for (std::size_t r = 0; r < all.size(); ++r) {
          if (!all[r].valid()) continue;
          given.push_back(r);
          outputs.push_back(all[r]);
        }
        return outputs;
      },
      v.graph());
  const std::vector<Value> outputs =
      inline_subgraph(unroll_scans(*whole).graph, v.operands, v.graph());
  std::vector<Value> results(v.node.types.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) results[given[i]] = outputs[i];
  return results;
}

NewResults unfused(const NodeVisit& v) {
  if (is_fused(v.node.op)) return expanded(v);
  if (is_one_of<op::SelectiveScan, op::GatedDeltaNet>(v.node.op)) return expanded_over_time(v);
  return std::nullopt;
}

bool is_plain_product(const op::DotGeneral& op, const NodeVisit& v) {
  return op.lhs_batch.empty() && v.operands[0].rank() == 2 && v.operands[1].rank() == 2 &&
         op.lhs_contracting == Axes{1} && op.rhs_contracting == Axes{0};
}

NewResults as_matmul(const NodeVisit& v) {
  const auto* op = v.node.op.as<op::DotGeneral>();
  if (op == nullptr) return std::nullopt;
  if (!is_plain_product(*op, v)) return expanded(v);
  return std::vector{matmul(v.operands[0], v.operands[1])};
}

bool is_decomposable_backward(const Op& op) {
  return op.mnemonic().find("_backward") != std::string_view::npos && has_expansion(op.kind());
}

bool is_seed(const Node& node) {
  const auto* in = node.op.as<op::Input>();
  return in != nullptr && in->role.kind == op::InputRole::Kind::DOutput;
}

}  // namespace

PassResult write_out_products(const Graph& graph) {
  return replace_nodes(graph, "write_out_products", [](const NodeVisit& v) -> NewResults {
    return is_fused(v.node.op) ? expanded(v) : as_matmul(v);
  });
}

PassResult decompose_fusion_regions(const Graph& graph) {
  return replace_nodes(graph, "decompose_fusion_regions", [](const NodeVisit& v) -> NewResults {
    if (!is_one_of<op::BatchElementwiseRegion, op::TransformRegion>(v.node.op)) return std::nullopt;
    return expanded(v);
  });
}

PassResult unfuse_elementwise_regions(const Graph& graph, const RegionLimits& limits) {
  return replace_nodes(graph, "unfuse_elementwise_regions", [&](const NodeVisit& v) -> NewResults {
    const auto* region = v.node.op.as<op::ElementwiseRegion>();
    if (region == nullptr) return std::nullopt;
    const bool fits = std::cmp_less_equal(region->chain.size(), limits.max_steps) &&
                      std::cmp_less_equal(v.operands.size(), limits.max_inputs);
    return fits ? std::nullopt : expanded(v);
  });
}

PassResult unfuse_fused_for_autodiff(const Graph& graph) {
  return to_fixpoint(graph, {[](const Graph& g) {
                       return replace_nodes(g, "unfuse_fused_for_autodiff", unfused);
                     }});
}

PassResult lower_group_norm(const Graph& graph) {
  return replace_nodes(graph, "lower_group_norm", [](const NodeVisit& v) -> NewResults {
    return v.node.op.is<op::GroupNorm>() ? expanded(v) : std::nullopt;
  });
}

PassResult lower_resize_nearest_2x(const Graph& graph) {
  return replace_nodes(graph, "lower_resize_nearest_2x", [](const NodeVisit& v) -> NewResults {
    const auto* resize = v.node.op.as<op::Resize>();
    if (resize == nullptr || resize->mode != ResizeMode::Nearest) return std::nullopt;
    return expanded(v);
  });
}

PassResult lower_dot_general(const Graph& graph) {
  return replace_nodes(graph, "lower_dot_general", as_matmul);
}

PassResult decompose_backward_ops(const Graph& graph) {
  const auto once = [](const Graph& g) {
    return replace_nodes(g, "decompose_backward_ops", [](const NodeVisit& v) -> NewResults {
      return is_decomposable_backward(v.node.op) ? expanded(v) : std::nullopt;
    });
  };
  return to_fixpoint(graph, {once});
}

PassResult internalize_d_output(const Graph& graph) {
  const auto seed_with_ones = [](const NodeVisit& v) -> NewResults {
    if (!is_seed(v.node)) return std::nullopt;
    return std::vector{filled(v.graph(), v.node.types[0], 1)};
  };
  return replace_nodes(graph, "internalize_d_output", seed_with_ones, unchanged);
}

}  // namespace ricci
