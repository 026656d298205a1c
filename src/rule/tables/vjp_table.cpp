// Collects the written reverse rules; an op that owes one and has none does not link.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/table.h"

#include "op/call_custom.h"
#include "rule/class_of.h"
#include "rule/control/body_masks.h"
#include "rule/perturb.h"
#include "rule/rule_fault.h"
#include "rule/tables/derivative_table.h"
#include "rule/tables/vjp_rules.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

using Rule = Cotangents (*)(const Op&, const VjpContext&);
using Keeping = ForwardResults (*)(const Op&, const ForwardContext&);

template <class T>
constexpr Rule rule_of() {
  if constexpr (vjp_source(rule::class_of<T>, T::info) == RuleSource::Written) {
    return [](const Op& op, const VjpContext& c) { return rule::vjp(*op.as<T>(), c); };
  } else {
    return nullptr;
  }
}

template <class T>
constexpr Keeping keeping_of() {
  if constexpr (T::info.keeps_residuals) {
    return
        [](const Op& op, const ForwardContext& c) { return rule::forward_keeping(*op.as<T>(), c); };
  } else {
    return nullptr;
  }
}

constexpr auto Rules = std::to_array<Rule>({
#define RICCI_OP(Type, builder) rule_of<op::Type>(),
#include "ricci/op/list.def"
});
constexpr auto Forwards = std::to_array<Keeping>({
#define RICCI_OP(Type, builder) keeping_of<op::Type>(),
#include "ricci/op/list.def"
});

void check_cotangents(const VjpContext& c, const Cotangents& given) {
  const auto fail = [&](std::string_view what) {
    rule::fail_rule(
        c.node(), fmt::format("the reverse rule of {} {}", rule::name_in_messages(c.node()), what));
  };
  if (given.size() != c.size()) {
    fail(fmt::format("gives {} cotangents for {} operands", given.size(), c.size()));
  }
  for (std::size_t k = 0; k < given.size(); ++k) {
    if (!given[k].valid()) continue;
    rule::require_graph(c.node(), "reverse", given[k], c.graph());
    if (given[k].type() == tangent_type(c[k].type())) continue;
    fail(fmt::format("gives {} for operand {}, which is {}", given[k].type().to_string(), k,
                     c[k].type().to_string()));
  }
}

}  // namespace

namespace rule {

Perturbations& perturbations() {
  static Perturbations hooks;
  return hooks;
}

}  // namespace rule

namespace {

// Is a name in a list such as `"x, w"`?
bool lists(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == name) return true;
    list.remove_prefix(std::min(comma + 2, list.size()));
  }
  return false;
}

// [int-op-float-grads] integers that stand for real numbers, or are moved on their way
bool carries_code(const Node& node, std::size_t k, const Type& operand) {
  if (!is_int(operand.dtype)) return false;
  const OpDescriptor& d = descriptor(node.op.kind());
  const std::string name = parameter_name(d.operands, k, node.operands.size());
  if (node.op.has(Trait::DataMovement)) {
    return node.types[0].dtype == operand.dtype && name != d.info->no_gradient;
  }
  return lists(d.info->codes, name);
}

}  // namespace

bool gives_derivative(const Node& node, std::size_t r) {
  if (!is_int(node.types[r].dtype)) return is_differentiable(node.types[r].dtype);
  if (node.op.has(Trait::DataMovement)) return true;
  const OpDescriptor& d = descriptor(node.op.kind());
  return !d.info->codes.empty() &&
         lists(d.info->codes, parameter_name(d.results, r, node.types.size()));
}

bool carries_derivative(const Registry& registry, const Node& node, std::size_t k,
                        const Type& operand) {
  if (!is_differentiable(operand.dtype)) return carries_code(node, k, operand);
  if (const auto* custom = node.op.as<op::Custom>()) {
    const auto entry = registry.find_or_throw(custom->name, custom->version);
    return call_custom(*custom, "differentiable", [&] { return entry->differentiable(k); });
  }
  if (const auto* unary = node.op.as<op::Unary>()) {
    if (is_complex(operand.dtype)) return row(unary->kind).gives != Gives::Truth;
    // A function that is flat wherever it is smooth, such as floor, lets nothing pass.
    const rule::Expression* slope = rule::derivative(unary->kind);
    return slope != nullptr && !slope->is(0);
  }
  if (const auto* custom = node.op.as<op::CustomFn>()) {
    return std::ranges::find(custom->no_gradient, static_cast<std::int64_t>(k)) ==
           custom->no_gradient.end();
  }
  const OpDescriptor& d = descriptor(node.op.kind());
  if (d.info->no_gradient.empty()) return true;
  return parameter_name(d.operands, k, node.operands.size()) != d.info->no_gradient;
}

Value VjpContext::cotangent_or_zero(std::size_t r) const {
  if (cotangents_[r].valid()) return cotangents_[r];
  return filled(graph_, tangent_type(node_.types[r]), 0);
}

Cotangents VjpContext::through(const Rewriting& build) const {
  std::vector<Type> types;
  for (const Value& v : operands_) types.push_back(v.type());
  // Only results with a cotangent are outputs of the rewriting.
  const auto body = make_body(
      "rewriting", types,
      [&](Graph& g, std::span<const Value> inputs) {
        const std::vector<Value> all = build(g, inputs);
        std::vector<Value> live;
        for (std::size_t r = 0; r < all.size(); ++r) {
          if (cotangents_[r].valid()) live.push_back(all[r]);
        }
        return live;
      },
      graph_);
  std::vector<Value> inputs(operands_.begin(), operands_.end());
  for (const Value& v : cotangents_) {
    if (v.valid()) inputs.push_back(v);
  }
  const std::vector<bool> every(body->outputs().size(), true);
  const auto gradient =
      bodies_.vjp(*body, {.seeds = every, .live = every, .wanted = needs_, .needed = needs_});
  return rule::scattered(inline_subgraph(*gradient, inputs, graph_), needs_);
}

Cotangents apply_vjp(const VjpContext& context) {
  const DefaultFloatEnvironment floats;
  const Op& op = context.node().op;
  const Rule rule = Rules[static_cast<std::size_t>(op.kind())];
  check_internal(rule != nullptr, "only ops with a written reverse rule are asked for one");
  Cotangents out = rule(op, context);
  if (const auto& hook = rule::perturbations().vjp) hook(context, out);
  check_cotangents(context, out);
  return out;
}

ForwardResults forward_for_vjp(const ForwardContext& c) {
  if (const Keeping keeping = Forwards[static_cast<std::size_t>(c.node.op.kind())]) {
    return keeping(c.node.op, c);
  }
  NodeSpec spec{.op = c.node.op, .bodies = c.node.bodies, .wanted = c.node.wanted};
  for (const Value& v : c.operands) spec.operands.push_back(v.id());
  const NodeId id = c.graph.add(std::move(spec));
  ForwardResults out;
  for (std::uint32_t r = 0; r < c.node.types.size(); ++r) {
    out.results.push_back(c.node.wanted[r] ? c.graph.value({id, r}) : Value());
  }
  return out;
}

}  // namespace ricci
