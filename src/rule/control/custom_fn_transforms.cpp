// Derivatives and batching of functions that bring their own rules.
#include <algorithm>

#include "rule/control/absent_inputs.h"
#include "rule/control/body_masks.h"
#include "rule/control/loop_rewriting.h"
#include "rule/derivative_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {
namespace {

using Kind = op::InputRole::Kind;

std::size_t num_outputs(const op::CustomFn& op, const Node& node) {
  return node.types.size() - static_cast<std::size_t>(op.num_residuals);
}

bool has_derivative_rule(const op::CustomFn& op, std::size_t k, const Type& type) {
  return is_differentiable(type.dtype) &&
         std::ranges::find(op.no_gradient, static_cast<std::int64_t>(k)) == op.no_gradient.end();
}

// The function with every output and residual.
std::vector<Value> whole_forward(Graph& graph, const Node& node, std::span<const Value> operands) {
  NodeSpec spec{
      .op = node.op, .bodies = node.bodies, .wanted = std::vector<bool>(node.types.size(), true)};
  for (const Value& v : operands) spec.operands.push_back(v.id());
  const NodeId id = graph.add(std::move(spec));
  std::vector<Value> all;
  for (std::uint32_t r = 0; r < node.types.size(); ++r) all.push_back(graph.value({id, r}));
  return all;
}

}  // namespace

// Keeps every output and residual: the rule may ask for them.
ForwardResults forward_keeping(const op::CustomFn&, const ForwardContext& c) {
  const std::vector<Value> all = whole_forward(c.graph, c.node, c.operands);
  return {all, all};
}

namespace {

// The cotangents that come by way of the residuals, which the rule says nothing about: where a
// gradient is differentiated again they have cotangents of their own.
Cotangents through_residuals(const op::CustomFn& op, const VjpContext& c) {
  const std::size_t outputs = num_outputs(op, c.node());
  std::vector<bool> live(c.node().types.size(), false);
  std::vector<Value> inputs(c.operands().begin(), c.operands().end());
  for (std::size_t r = outputs; r < live.size(); ++r) {
    live[r] = c.cotangent(r).valid();
    if (live[r]) inputs.push_back(c.cotangent(r));
  }
  if (!any(live)) return c.none();
  const auto gradient =
      c.bodies().vjp(*c.node().body("fwd"),
                     {.seeds = live, .live = live, .wanted = c.needs(), .needed = c.needs()});
  return scattered(inline_subgraph(*gradient, inputs, c.graph()), c.needs());
}

Cotangents by_reverse_rule(const op::CustomFn& op, const VjpContext& c) {
  const Graph* rule = c.node().body("vjp");
  check_internal(rule != nullptr, "a custom_fn without a vjp is differentiated as its parts");
  const std::vector<Value> inputs =
      inputs_by_role(*rule, c.operands(), [&](const op::InputRole& role) {
        const auto i = static_cast<std::size_t>(role.index);
        if (role.kind == Kind::DOutput) return c.cotangent(i);
        return c.residuals()[role.kind == Kind::Residual ? num_outputs(op, c.node()) + i : i];
      });
  const std::vector<Value> given = inline_with_absent(*rule, inputs, c.graph());
  Cotangents out = c.none();
  for (std::size_t k = 0, next = 0; k < out.size(); ++k) {
    if (!has_derivative_rule(op, k, c[k].type())) continue;
    const Value d = given[next++];
    if (c.needs(k)) out[k] = d;
  }
  return out;
}

// The forward rule is linear in the tangents, so its gradient by them is the same everywhere: it is
// taken at zero.
Cotangents transpose_of_jvp(const op::CustomFn& op, const VjpContext& c) {
  const Graph& rule = *c.node().body("jvp");
  std::vector<Value> inputs = inputs_by_role(rule, c.operands(), [&](const op::InputRole& role) {
    return role.kind == Kind::Tangent ? Value()
                                      : c.residuals()[static_cast<std::size_t>(role.index)];
  });
  BodyVjp request;
  for (std::size_t r = 0; r < num_outputs(op, c.node()); ++r) {
    if (!is_differentiable(c.node().types[r].dtype)) continue;
    const Value d = c.cotangent(r);
    request.seeds.push_back(d.valid());
    if (d.valid()) inputs.push_back(d);
  }
  request.live = request.seeds;
  std::vector<std::size_t> asked;  // operands, by the cotangents the transposed rule gives
  for (const NodeId id : rule.inputs()) {
    const op::InputRole& role = rule.node(id).op.as<op::Input>()->role;
    const auto k = static_cast<std::size_t>(role.index);
    request.wanted.push_back(role.kind == Kind::Tangent && c.needs(k));
    if (request.wanted.back()) asked.push_back(k);
  }
  request.needed = request.wanted;
  const auto transposed = c.bodies().vjp(rule, request);
  const std::vector<Value> given = inline_with_absent(*transposed, inputs, c.graph());
  Cotangents out = c.none();
  for (std::size_t i = 0; i < asked.size(); ++i) out[asked[i]] = given[i];
  return out;
}

}  // namespace

Cotangents vjp(const op::CustomFn& op, const VjpContext& c) {
  Cotangents out = through_residuals(op, c);
  bool arrived = false;
  for (std::size_t r = 0; r < num_outputs(op, c.node()); ++r) {
    arrived = arrived || c.cotangent(r).valid();
  }
  if (!arrived) return out;
  const Cotangents ruled = op.transpose_jvp ? transpose_of_jvp(op, c) : by_reverse_rule(op, c);
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (ruled[k].valid()) out[k] = sum_of(out[k], ruled[k]);
  }
  return out;
}

// [customfn-partial-rules]
Tangents jvp(const op::CustomFn& op, JvpContext& c) {
  const Graph& fwd = *c.node().body("fwd");
  const Graph* rule = c.node().body("jvp");
  if (rule == nullptr) {
    return c.through([&](Graph& graph, std::span<const Value> operands) {
      std::vector<Value> all = inline_subgraph(fwd, operands, graph);
      for (std::size_t r = 0; r < all.size(); ++r) {
        if (!c.node().wanted[r]) all[r] = Value();
      }
      return all;
    });
  }
  const std::size_t outputs = num_outputs(op, c.node());
  const std::vector<Value> primal = whole_forward(c.graph(), c.node(), c.operands());
  c.give_results(primal);
  const std::vector<Value> tangent_inputs =
      inputs_by_role(*rule, c.operands(), [&](const op::InputRole& role) {
        const auto i = static_cast<std::size_t>(role.index);
        return role.kind == Kind::Tangent ? c.tangent(i) : primal[i];
      });
  const std::vector<Value> given = inline_with_absent(*rule, tangent_inputs, c.graph());
  Tangents out = c.none();
  for (std::size_t r = 0, next = 0; r < outputs; ++r) {
    if (is_differentiable(c.node().types[r].dtype)) out[r] = given[next++];
  }
  // The rule gives no tangents of residuals; where they are wanted they are those of the parts.
  const auto& wanted = c.node().wanted;
  if (std::none_of(wanted.begin() + static_cast<std::ptrdiff_t>(outputs), wanted.end(),
                   [](bool b) { return b; })) {
    return out;
  }
  const BodyTangent tangent =
      c.bodies().jvp(fwd, c.live(), std::vector<bool>(wanted.size(), false));
  std::vector<Value> inputs(c.operands().begin(), c.operands().end());
  for (std::size_t k = 0; k < c.size(); ++k) {
    if (c.live(k)) inputs.push_back(c.tangent(k));
  }
  const std::vector<Value> parts = inline_subgraph(*tangent.graph, inputs, c.graph());
  for (std::size_t r = 0, next = wanted.size(); r < wanted.size(); ++r) {
    if (!tangent.outputs[r]) continue;
    const Value t = parts[next++];
    if (r >= outputs) out[r] = t;
  }
  return out;
}

namespace {

// A derivative body over a batch: inputs that stand for outputs or residuals are batched, those
// that stand for operands, and their tangents, as the operands are. All outputs are batched.
std::shared_ptr<const Graph> batched_rule(const Graph& rule, const VmapContext& c) {
  std::vector<bool> batched;
  std::size_t next = 0;
  for (const NodeId id : rule.inputs()) {
    const op::InputRole& role = rule.node(id).op.as<op::Input>()->role;
    switch (role.kind) {
      case Kind::None: batched.push_back(c.batched(next++)); break;
      case Kind::Tangent: batched.push_back(c.batched(static_cast<std::size_t>(role.index))); break;
      case Kind::DOutput:
      case Kind::PrimalOutput:
      case Kind::Residual: batched.push_back(true); break;
    }
  }
  const std::vector<bool> every(rule.outputs().size(), true);
  return c.bodies().batch(rule, batched, c.batch(), every).graph;
}

// The cotangent of an operand that all examples share is the sum of theirs.
std::shared_ptr<const Graph> summed_over_shared(const op::CustomFn& op, const Graph& rule,
                                                const VmapContext& c) {
  Graph out = rule;
  std::vector<Value> outputs = out.output_values();
  for (std::size_t k = 0, next = 0; k < c.size(); ++k) {
    if (!has_derivative_rule(op, k, c.type(k))) continue;
    Value& d = outputs[next++];
    if (!c.batched(k)) d = sum(d, {0});
  }
  out.set_outputs(outputs);
  return std::make_shared<const Graph>(std::move(out));
}

}  // namespace

// [customfn-vmap-shared] Operands all examples share stay shared. Every output is batched: its
// cotangent then has one entry per example, as the rules expect.
BatchedValues batch(const op::CustomFn& op, const VmapContext& c) {
  const Graph& fwd = *c.node().body("fwd");
  const std::vector<bool> every(fwd.outputs().size(), true);
  NodeSpec spec{.op = Op(op),
                .bodies = {Body{"fwd", c.bodies().batch(fwd, c.batched(), c.batch(), every).graph}},
                .wanted = c.node().wanted};
  if (const Graph* rule = c.node().body("vjp")) {
    spec.bodies.push_back({"vjp", summed_over_shared(op, *batched_rule(*rule, c), c)});
  }
  if (const Graph* rule = c.node().body("jvp")) {
    spec.bodies.push_back({"jvp", batched_rule(*rule, c)});
  }
  for (std::size_t k = 0; k < c.size(); ++k) spec.operands.push_back(c[k].id());
  const NodeId id = c.graph().add(std::move(spec));
  BatchedValues out;
  for (std::uint32_t r = 0; r < c.node().types.size(); ++r) {
    out.emplace_back(c.node().wanted[r] ? c.graph().value({id, r}) : Value(), true);
  }
  return out;
}

}  // namespace ricci::rule
