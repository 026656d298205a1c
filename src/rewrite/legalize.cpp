#include "ricci/compiler/rewrite/legalize.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rewrite/control_flow.h"
#include "ricci/compiler/rewrite/unfuse.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/op/ops.h"
#include "ricci/support/text.h"

#include "rewrite/replace_nodes.h"

namespace ricci {
namespace {

bool is_given(const Node& node) {
  return node.op.is<op::Input>() || node.op.is<op::Param>() || node.op.is<op::Constant>();
}

std::string name_of(const Node& node) {
  if (const auto* custom = node.op.as<op::Custom>())
    return fmt::format("custom '{}'", custom->name);
  return std::string(node.op.mnemonic());
}

void collect(const Graph& graph, const SupportedOps& supported, const std::string& inside,
             std::vector<UnsupportedNode>& out) {
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (!supported.supports(graph, node)) {
      out.push_back({id, node.op.kind(), name_of(node), inside, supported.why_not(graph, node),
                     node.provenance ? node.provenance->where : SourcePosition{}});
    }
    for (const Body& body : node.bodies) {
      const std::string here = fmt::format("{} {}", node.op.mnemonic(), body.role);
      collect(*body.graph, supported, inside.empty() ? here : inside + ", " + here, out);
    }
  }
}

// One round: every unsupported node that has an expansion is replaced by it.
PassResult expand_unsupported(const Graph& graph, const SupportedOps& supported) {
  return replace_nodes(
      graph, "rewrite_for_backend",
      [&](const NodeVisit& v) -> NewResults {
        if (supported.supports(v.rebuild.from(), v.node)) return std::nullopt;
        if (v.node.op.is<op::CustomFn>()) {
          return inline_subgraph(*v.node.body("fwd"), v.operands, v.graph());
        }
        if (!has_expansion(v.node.op.kind())) return std::nullopt;
        return expand_node(v.node, v.operands, v.graph());
      },
      [&](const Graph& body) { return expand_unsupported(body, supported); });
}

// Rewrites of whole kinds that are not expansions of one node.
struct WholeRewrite {
  OpKind kind;
  PassResult (*run)(const Graph&);
};
PassResult unrolled_scans(const Graph& graph) { return unroll_scans(graph); }
constexpr auto WholeRewrites = std::to_array<WholeRewrite>({
    {OpKind::Reduce, legalize_multi_axis_reduce},
    {OpKind::If, inline_if},
    {OpKind::While, unroll_while},
    {OpKind::Scan, unrolled_scans},
});

PassResult then(PassResult first, PassResult second) {
  return {std::move(second.graph), first.map.then(second.map), first.changed || second.changed};
}

bool is_trailing_part(const Dims& dims, const Dims& whole) {
  return dims.size() <= whole.size() && std::equal(dims.rbegin(), dims.rend(), whole.rbegin());
}

bool has_one_element(const Dims& dims) {
  return std::ranges::all_of(dims, [](const Dim& d) { return d.is(1); });
}

NewResults with_explicit_broadcast(const NodeVisit& v) {
  if (!v.node.op.has(Trait::Elementwise) || v.operands.size() < 2 || v.node.types.size() != 1) {
    return std::nullopt;
  }
  const Dims& out = v.node.types[0].dims;
  std::vector<Value> operands = v.operands;
  bool changed = false;
  for (Value& x : operands) {
    if (has_one_element(x.dims()) || is_trailing_part(x.dims(), out)) continue;
    x = broadcast_to(x, out);
    changed = true;
  }
  if (!changed) return std::nullopt;
  return v.graph().add_node(v.node.op, operands);
}

}  // namespace

SupportedOps SupportedOps::only(std::initializer_list<OpKind> kinds) {
  SupportedOps ops;
  ops.all_ = false;
  ops.kinds_ = kinds;
  return ops;
}

SupportedOps& SupportedOps::require(OpKind kind, std::string what, Condition holds) {
  conditions_.emplace(kind, Required{std::move(what), std::move(holds)});
  return *this;
}

const SupportedOps::Required* SupportedOps::failed(const Graph& graph, const Node& node) const {
  const auto [first, last] = conditions_.equal_range(node.op.kind());
  for (auto c = first; c != last; ++c) {
    if (!c->second.holds(graph, node)) return &c->second;
  }
  return nullptr;
}

bool SupportedOps::supports(const Graph& graph, const Node& node) const {
  if (is_given(node)) return true;
  if (!all_ && !kinds_.contains(node.op.kind())) return false;
  return failed(graph, node) == nullptr;
}

std::string SupportedOps::why_not(const Graph& graph, const Node& node) const {
  if (!all_ && !kinds_.contains(node.op.kind())) return {};
  const Required* required = failed(graph, node);
  return required == nullptr ? "" : required->what;
}

std::vector<UnsupportedNode> legalize_for_backend(const Graph& graph,
                                                  const SupportedOps& supported) {
  std::vector<UnsupportedNode> out;
  if (!supported.claims_all()) collect(graph, supported, {}, out);
  return out;
}

std::string format_legalize_error(std::string_view backend,
                                  const std::vector<UnsupportedNode>& nodes) {
  if (nodes.empty()) return fmt::format("{} supports every op of the graph", backend);
  std::map<std::string, std::size_t> counts;
  bool custom = false;
  for (const UnsupportedNode& n : nodes) {
    ++counts[n.reason.empty() ? n.op : fmt::format("{} ({} is needed)", n.op, n.reason)];
    custom = custom || n.kind == OpKind::Custom;
  }
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : counts) kinds.push_back(fmt::format("{} x{}", kind, count));
  std::string text = fmt::format("{} cannot run {} node{}: {}", backend, nodes.size(),
                                 nodes.size() == 1 ? "" : "s", join(kinds, ", "));
  const UnsupportedNode& first = nodes.front();
  text += fmt::format("; the first is node {}", first.node);
  if (!first.inside.empty()) text += fmt::format(" inside {}", first.inside);
  if (first.where.known()) text += fmt::format(", made at {}", first.where.to_string());
  if (custom) text += "; a registered op needs a kernel for the backend, or a custom_fn instead";
  return text;
}

PassResult rewrite_for_backend(const Graph& graph, const SupportedOps& supported) {
  PassResult now = unchanged(graph);
  for (std::size_t round = 0; round <= OpCount; ++round) {
    std::set<OpKind> lacking;
    for (const UnsupportedNode& n : legalize_for_backend(now.graph, supported)) {
      lacking.insert(n.kind);
    }
    if (lacking.empty()) return now;
    bool changed = false;
    for (const WholeRewrite& rewrite : WholeRewrites) {
      if (!lacking.contains(rewrite.kind)) continue;
      PassResult next = rewrite.run(now.graph);
      changed = changed || next.changed;
      now = then(std::move(now), std::move(next));
    }
    PassResult expanded = expand_unsupported(now.graph, supported);
    changed = changed || expanded.changed;
    now = then(std::move(now), std::move(expanded));
    if (!changed) return now;
  }
  throw InternalError("expansions lead back to ops they started from");
}

PassResult legalize_or_rewrite_for_backend(const Graph& graph, const SupportedOps& supported,
                                           std::string_view backend,
                                           const KernelDispatch& dispatch) {
  PassResult lowered = lower_logical_kernels(graph, supported, dispatch);
  PassResult rewritten = rewrite_for_backend(lowered.graph, supported);
  PassResult result = then(std::move(lowered), std::move(rewritten));
  const std::vector<UnsupportedNode> left = legalize_for_backend(result.graph, supported);
  if (left.empty()) return result;
  throw UserError(Diagnostic{ErrorCode::UnsupportedOnBackend,
                             std::string(backend),
                             format_legalize_error(backend, left),
                             left.front().where,
                             {},
                             {}});
}

std::span<const OpKind> logical_kernels() {
  static constexpr std::array Kinds = {OpKind::GroupNorm, OpKind::Resize,
                                       OpKind::GaussianSplatRender};
  return Kinds;
}

PassResult lower_logical_kernels(const Graph& graph, const SupportedOps& supported,
                                 const KernelDispatch& dispatch) {
  const auto is_common = [&](const Graph& g, const Node& node) {
    const OpKind kind = node.op.kind();
    if (std::ranges::count(logical_kernels(), kind) == 0) return false;
    if (dispatch.force_native_kinds.contains(kind)) return false;
    if (dispatch.force_common_kinds.contains(kind)) return true;
    if (dispatch.policy != DispatchPolicy::PreferNative) {
      return dispatch.policy == DispatchPolicy::ForceCommon;
    }
    return !supported.supports(g, node);
  };
  const auto written_out = [](const NodeVisit& v) -> NewResults {
    return expand_node(v.node, v.operands, v.graph());
  };
  return or_unchanged(graph, replace_where(graph, "lower_logical_kernels", is_common, written_out));
}

PassResult legalize_broadcast(const Graph& graph) {
  return replace_nodes(graph, "legalize_broadcast", with_explicit_broadcast);
}

PassResult lower_backward_ops(const Graph& graph) {
  return replace_nodes(graph, "lower_backward_ops", [](const NodeVisit& v) -> NewResults {
    if (!v.node.op.is<op::ReluBackward>() && !v.node.op.is<op::ActivationBackward>()) {
      return std::nullopt;
    }
    return expand_node(v.node, v.operands, v.graph());
  });
}

PassResult promote_params_to_inputs(const Graph& graph, const std::set<std::string>& names) {
  const auto promote = [&](const NodeVisit& v) -> NewResults {
    const auto* param = v.node.op.as<op::Param>();
    if (param == nullptr || !names.contains(param->name)) return std::nullopt;
    return std::vector{v.graph().input(param->name, param->type)};
  };
  return replace_nodes(graph, "promote_params_to_inputs", promote, unchanged);
}

}  // namespace ricci
