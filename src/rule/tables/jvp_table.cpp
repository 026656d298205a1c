// Collects the forward rules: those written, and those traits and expansions give.
#include <array>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/table.h"

#include "rule/class_of.h"
#include "rule/control/body_masks.h"
#include "rule/perturb.h"
#include "rule/rule_fault.h"
#include "rule/tables/jvp_rules.h"
#include "support/float_environment.h"

namespace ricci {
namespace {

using Rule = Tangents (*)(const Op&, JvpContext&);

std::vector<Value> add(JvpContext& c, std::span<const Value> operands) {
  NodeSpec spec{.op = c.node().op, .bodies = c.node().bodies, .wanted = c.node().wanted};
  for (const Value& v : operands) spec.operands.push_back(v.id());
  const NodeId id = c.graph().add(std::move(spec));
  std::vector<Value> out;
  for (std::uint32_t r = 0; r < c.node().types.size(); ++r) {
    out.push_back(c.node().wanted[r] ? c.graph().value({id, r}) : Value());
  }
  return out;
}

// f(t): operands that can have a tangent are replaced by it, the others stay.
Tangents linear(const Op&, JvpContext& c) {
  std::vector<Value> operands(c.operands().begin(), c.operands().end());
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (carries_derivative(c.graph().registry(), c.node(), k, c[k].type()))
      operands[k] = c.tangent_or_zero(k);
  }
  return add(c, operands);
}

// Σ_k f(…, t_k, …)
Tangents multilinear(const Op&, JvpContext& c) {
  Tangents total = c.none();
  for (std::size_t k = 0; k < c.size(); ++k) {
    if (!c.live(k)) continue;
    std::vector<Value> operands(c.operands().begin(), c.operands().end());
    operands[k] = c.tangent(k);
    const std::vector<Value> term = add(c, operands);
    for (std::size_t r = 0; r < total.size(); ++r) {
      if (!term[r].valid()) continue;
      total[r] = total[r].valid() ? total[r] + term[r] : term[r];
    }
  }
  return total;
}

Tangents by_expansion(const Op&, JvpContext& c) {
  return c.through([&](Graph& g, std::span<const Value> operands) {
    return expand_node(c.node(), {operands.begin(), operands.end()}, g);
  });
}

Tangents zero(const Op&, JvpContext& c) { return c.none(); }

template <class T>
constexpr Rule rule_of() {
  constexpr RuleSource source = jvp_source(rule::class_of<T>, T::info);
  if constexpr (source == RuleSource::Written) {
    return [](const Op& op, JvpContext& c) { return rule::jvp(*op.as<T>(), c); };
  } else {
    switch (source) {
      case RuleSource::Linear: return linear;
      case RuleSource::Multilinear: return multilinear;
      case RuleSource::Expansion: return by_expansion;
      default: return zero;
    }
  }
}

constexpr auto Rules = std::to_array<Rule>({
#define RICCI_OP(Type, builder) rule_of<op::Type>(),
#include "ricci/op/list.def"
});

}  // namespace

std::vector<bool> JvpContext::live() const {
  std::vector<bool> out;
  for (const Value& t : tangents_) out.push_back(t.valid());
  return out;
}

Value JvpContext::tangent_or_zero(std::size_t k) const {
  return live(k) ? tangent(k) : filled(graph_, tangent_type(operands_[k].type()), 0);
}

const std::vector<Value>& JvpContext::results() {
  if (results_.empty()) results_ = add(*this, operands_);
  return results_;
}

Value JvpContext::result(std::size_t r) { return results()[r]; }

Tangents JvpContext::through(const Rewriting& build) {
  std::vector<Type> types;
  for (const Value& v : operands_) types.push_back(v.type());
  std::vector<std::size_t> position(node_.types.size());  // 1-based; 0 where there is no result
  const auto body = make_body(
      "rewriting", types,
      [&](Graph& g, std::span<const Value> inputs) {
        const std::vector<Value> all = build(g, inputs);
        std::vector<Value> outputs;
        for (std::size_t r = 0; r < all.size(); ++r) {
          if (!all[r].valid()) continue;
          outputs.push_back(all[r]);
          position[r] = outputs.size();
        }
        return outputs;
      },
      graph_);
  const std::size_t count = body->outputs().size();
  const BodyTangent tangent = bodies_.jvp(*body, live(), std::vector<bool>(count, false));
  std::vector<Value> inputs(operands_.begin(), operands_.end());
  for (const Value& t : tangents_) {
    if (t.valid()) inputs.push_back(t);
  }
  const std::vector<Value> given = inline_subgraph(*tangent.graph, inputs, graph_);
  const std::vector<Value> by_output =
      rule::scattered(std::span(given).subspan(count), tangent.outputs);
  Tangents out = none();
  std::vector<Value> primals(node_.types.size());
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (position[r] == 0) continue;
    primals[r] = given[position[r] - 1];
    out[r] = by_output[position[r] - 1];
  }
  give_results(std::move(primals));
  return out;
}

Tangents apply_jvp(JvpContext& c) {
  const DefaultFloatEnvironment floats;
  const Op& op = c.node().op;
  Tangents out = Rules[static_cast<std::size_t>(op.kind())](op, c);
  if (const auto& hook = rule::perturbations().jvp) hook(c.node(), out);
  if (out.size() != c.node().types.size()) {
    rule::fail_rule(
        c.node(), fmt::format("the forward rule of {} gives {} tangents for {} results",
                              rule::name_in_messages(c.node()), out.size(), c.node().types.size()));
  }
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (!out[r].valid()) continue;
    rule::require_graph(c.node(), "forward", out[r], c.graph());
    if (out[r].type() == tangent_type(c.node().types[r])) continue;
    rule::fail_rule(c.node(),
                    fmt::format("the forward rule of {} gives {} for a result of type {}",
                                rule::name_in_messages(c.node()), out[r].type().to_string(),
                                c.node().types[r].to_string()));
  }
  return out;
}

}  // namespace ricci
