#include "transform/taylor.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/jvp.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/op/table.h"

#include "transform/bodies.h"
#include "transform/leaves.h"
#include "transform/located.h"
#include "transform/names.h"

namespace ricci {
namespace {

Provenance series_of(const Node& node) {
  Provenance p = node.provenance ? *node.provenance : Provenance{};
  const bool named = !node.names.empty() && !node.names[0].empty();
  p.origin =
      fmt::format("series of {}", named ? "%" + node.names[0] : std::string(node.op.mnemonic()));
  return p;
}

bool any_valid(const std::vector<Value>& values) {
  return std::ranges::any_of(values, [](const Value& v) { return v.valid(); });
}

Value sum_of(Value a, Value b) {
  if (!a.valid()) return b;
  return b.valid() ? a + b : a;
}

[[noreturn]] void refuse(const Node& node) {
  throw AutodiffError(
      ErrorCode::WrongStage,
      fmt::format("'{}' has to be lowered before it can be differentiated", node.op.mnemonic()),
      "use GraphModule::lower, or the functions of ricci/model/autodiff.h");
}

}  // namespace

Taylor::Taylor(const Graph& graph, std::size_t order)
    : from_(graph), order_(order), build_(graph), rules_(graph), mirrored_(graph.size()) {}

void Taylor::copy_leaves() {
  for (NodeId id = 0; id < from_.size(); ++id) {
    const Node& node = from_.nodes()[id];
    if (!node.is_leaf()) continue;
    build_.copy(id);
    mirrored_[id] = {rules_.mirror(node, {}), 0};
    State& s = state(mirrored_[id].node);
    s.way = Way::Constant;
    s.known = {{build_.value({id, 0})}};
  }
}

void Taylor::set_series(ValueId leaf, Series series) {
  if (!any_valid(series)) return;
  const ValueId v = mirrored_[leaf.node];
  rules_.mark_moving(v);
  State& s = state(v.node);
  s.way = Way::Given;
  series.resize(order_);
  for (const Value& c : series) s.known.push_back({c});
}

void Taylor::sweep() {
  for (NodeId id = 0; id < from_.size(); ++id) {
    if (!from_.nodes()[id].is_leaf()) take(id);
  }
}

void Taylor::take(NodeId id) {
  const Node& node = from_.nodes()[id];
  std::vector<ValueId> operands;
  for (const ValueId v : node.operands) operands.push_back({mirrored_[v.node].node, v.result});
  const NodeId mirror = rules_.mirror(node, std::move(operands));
  mirrored_[id] = {mirror, 0};
  at_node(node, [&] {
    State& s = state(mirror);
    if (s.known.empty()) {
      s.way = decide(mirror);
      if (s.way != Way::Parts && s.way != Way::Joint) {
        build_.copy(id);
        Results& values = s.known.emplace_back();
        for (std::uint32_t r = 0; r < node.types.size(); ++r) {
          values.push_back(node.wanted[r] ? build_.value({id, r}) : Value());
        }
      }
    }
    const ProvenanceScope scope(graph(), series_of(node));
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      if (!node.wanted[r]) continue;
      const Value v = coefficient({mirror, r}, 0);
      build_.map({id, r}, v);
      keep_name(node, r, v);
    }
    for (std::uint32_t r = 0; r < node.types.size(); ++r) (void)coefficient({mirror, r}, order_);
  });
}

Taylor::State& Taylor::state(NodeId id) {
  while (states_.size() <= id) states_.push_back({.in_rule = in_rule_});
  return states_[id];
}

Taylor::Way Taylor::decide(NodeId id) {
  const Node& node = rules_.node(id);
  if (rules_.rated_by(id) != nullptr) return Way::RateOf;
  const std::vector<bool> moves = rules_.moving_operands(node);
  const RuleSource source = descriptor(node.op.kind()).jvp;
  if (std::ranges::find(moves, true) == moves.end()) return Way::Constant;
  if (source == RuleSource::Refused) refuse(node);
  switch (series_form(node, moves)) {
    case SeriesForm::Product: return Way::Product;
    case SeriesForm::Quotient: return Way::Quotient;
    case SeriesForm::Joint: return Way::Joint;
    case SeriesForm::Parts: return Way::Parts;
    case SeriesForm::Rate: break;
  }
  return Way::Rate;
}

// Asks the forward rule for the rates of a node's results, as functions of s.
void Taylor::read_rule(NodeId id) {
  const Node node = rules_.node(id);  // a copy: the rule adds nodes
  const std::vector<bool> moves = rules_.moving_operands(node);
  const std::vector<Value> operands = rules_.operands(node);
  std::vector<Value> rates(operands.size());
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (moves[k]) rates[k] = rules_.rate(operands[k].id());
  }
  (void)state(static_cast<NodeId>(rules_.graph().size() - 1));  // what is there is no part of it
  const auto first = static_cast<NodeId>(rules_.graph().size());
  JvpContext context(rules_.graph(), node, operands, rates, body_transforms());
  Results own;
  for (std::uint32_t r = 0; r < node.types.size(); ++r) {
    own.push_back(node.wanted[r] ? rules_.graph().value({id, r}) : Value());
  }
  context.give_results(std::move(own));
  std::vector<Value> slopes = apply_jvp(context);
  rules_.merge_new();
  in_rule_ = true;
  (void)state(static_cast<NodeId>(rules_.graph().size() - 1));
  in_rule_ = false;
  State& s = state(id);
  s.derived = std::move(slopes);
  if (!any_valid(s.derived)) {
    s.way = Way::Constant;
  } else {
    s.way = rules_.depend_on_rates_only(s.derived, first, rates) ? Way::Linear : Way::Slope;
  }
}

void Taylor::take_apart(NodeId id) {
  const Node node = rules_.node(id);
  const bool in_rule = state(id).in_rule;
  std::vector<Value> parts = series_parts(node, rules_.operands(node), rules_.graph());
  rules_.merge_new();
  in_rule_ = in_rule;
  (void)state(static_cast<NodeId>(rules_.graph().size() - 1));
  in_rule_ = false;
  state(id).derived = std::move(parts);
}

SeriesResults Taylor::joint(NodeId id, std::size_t order) {
  const Node node = rules_.node(id);
  const std::vector<bool> moves = rules_.moving_operands(node);
  std::vector<Value> operands;
  std::vector<Series> series(node.operands.size());
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    const ValueId v = node.operands[k];
    operands.push_back(value_or_zero(v));
    for (std::size_t j = 1; moves[k] && j <= order; ++j) series[k].push_back(coefficient(v, j));
    while (!series[k].empty() && !series[k].back().valid()) series[k].pop_back();
  }
  return apply_series({graph(), node, operands, series, order, body_transforms()});
}

// All orders at once: nothing its operands are made of waits for the results.
void Taylor::solve_jointly(NodeId id) {
  SeriesResults all = joint(id, order_);
  std::vector<Results> known{std::move(all.values)};
  for (std::size_t k = 1; k <= order_; ++k) {
    Results& at = known.emplace_back();
    for (const Series& s : all.series) at.push_back(k <= s.size() ? s[k - 1] : Value());
  }
  state(id).known = std::move(known);
}

Value Taylor::coefficient(ValueId v, std::size_t k) {
  const ValueId at = rules_.resolved(v);
  if (k > 0 && !rules_.moves(at)) return {};
  while (state(at.node).known.size() <= k) {
    State& s = state(at.node);
    if (s.way == Way::Undecided) s.way = decide(at.node);
    if (s.way == Way::Joint && !s.in_rule) {
      solve_jointly(at.node);
      continue;
    }
    Results next = compute(at.node, s.known.size());
    state(at.node).known.push_back(std::move(next));
  }
  return state(at.node).known[k][at.result];
}

Value Taylor::value_or_zero(ValueId v) {
  const Value c = coefficient(v, 0);
  return c.valid() ? c : filled(graph(), rules_.graph().type(v), 0);
}

Taylor::Results Taylor::compute(NodeId id, std::size_t k) {
  if (const ValueId* of = rules_.rated_by(id)) {
    const Value c = coefficient(*of, k + 1);
    return {c.valid() && k > 0 ? c * static_cast<double>(k + 1) : c};
  }
  if (state(id).way == Way::Parts) {
    if (state(id).derived.empty()) take_apart(id);
    Results out;
    const std::vector<Value> parts = state(id).derived;
    for (const Value& part : parts) {
      out.push_back(part.valid() ? coefficient(part.id(), k) : Value());
    }
    return out;
  }
  if (k == 0) return evaluate(id);
  if (state(id).way == Way::Rate) read_rule(id);
  switch (state(id).way) {
    case Way::Product: return product(id, k);
    case Way::Quotient: return {quotient(id, k)};
    case Way::Linear: return push(id, k);
    case Way::Slope: return integrated(id, k);
    case Way::Joint: {
      Results out;
      for (const Series& s : joint(id, k).series) out.push_back(k <= s.size() ? s[k - 1] : Value());
      return out;
    }
    case Way::Undecided:
    case Way::Constant:
    case Way::Given:
    case Way::RateOf:
    case Way::Parts:
    case Way::Rate: break;
  }
  return Results(rules_.node(id).types.size());
}

Taylor::Results Taylor::apply(const Node& node, const std::vector<Value>& operands) {
  NodeSpec spec{.op = node.op, .bodies = node.bodies, .wanted = node.wanted};
  for (const Value& v : operands) spec.operands.push_back(v.id());
  const NodeId added = graph().add(std::move(spec));
  Results out;
  for (std::uint32_t r = 0; r < node.types.size(); ++r) {
    out.push_back(node.wanted[r] ? graph().value({added, r}) : Value());
  }
  return out;
}

// The value itself, of a function a rule has added.
Taylor::Results Taylor::evaluate(NodeId id) {
  const Node node = rules_.node(id);
  const bool product = state(id).way == Way::Product;
  std::vector<Value> operands;
  for (const ValueId v : node.operands) {
    if (product && !coefficient(v, 0).valid()) return Results(node.types.size());
    operands.push_back(value_or_zero(v));
  }
  return apply(node, operands);
}

// The forward rule, with coefficients for tangents.
Taylor::Results Taylor::push(NodeId id, std::size_t k) {
  const Node node = rules_.node(id);
  const std::vector<bool> moves = rules_.moving_operands(node);
  std::vector<Value> operands;
  std::vector<Value> tangents(node.operands.size());
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    operands.push_back(value_or_zero(node.operands[i]));
    if (moves[i]) tangents[i] = coefficient(node.operands[i], k);
  }
  if (!any_valid(tangents)) return Results(node.types.size());
  JvpContext context(graph(), node, operands, tangents, body_transforms());
  context.give_results(state(id).known[0]);
  return apply_jvp(context);
}

// k·y_k = (y')_{k-1}
Taylor::Results Taylor::integrated(NodeId id, std::size_t k) {
  const std::vector<Value> slopes = state(id).derived;
  Results out;
  for (const Value& slope : slopes) {
    const Value c = slope.valid() ? coefficient(slope.id(), k - 1) : Value();
    out.push_back(c.valid() && k > 1 ? c / static_cast<double>(k) : c);
  }
  return out;
}

Taylor::Results Taylor::product(NodeId id, std::size_t k) {
  const Node node = rules_.node(id);
  const std::vector<bool> moves = rules_.moving_operands(node);
  if (node.operands.size() == 2 && node.op.has(Trait::Elementwise) &&
      rules_.resolved(node.operands[0]) == rules_.resolved(node.operands[1])) {
    return {square(id, k)};
  }
  Results total(node.types.size());
  std::vector<Value> factors(node.operands.size());
  // Every way to share what is left of k among the operands from `at` on.
  const auto share = [&](const auto& self, std::size_t at, std::size_t left) -> void {
    if (at == factors.size()) {
      if (left > 0) return;
      const Results term = apply(node, factors);
      for (std::size_t r = 0; r < total.size(); ++r) total[r] = sum_of(total[r], term[r]);
      return;
    }
    for (std::size_t j = 0; j <= (moves[at] ? left : 0); ++j) {
      factors[at] = coefficient(node.operands[at], j);
      if (factors[at].valid()) self(self, at + 1, left - j);
    }
  };
  share(share, 0, k);
  return total;
}

// a·a: each pair of different coefficients once.
Value Taylor::square(NodeId id, std::size_t k) {
  const ValueId a = rules_.node(id).operands[0];
  Value twice;
  for (std::size_t j = 0; 2 * j < k; ++j) {
    const Value low = coefficient(a, j);
    const Value high = coefficient(a, k - j);
    if (low.valid() && high.valid()) twice = sum_of(twice, low * high);
  }
  if (twice.valid()) twice = twice * 2.0;
  const Value middle = k % 2 == 0 ? coefficient(a, k / 2) : Value();
  return middle.valid() ? sum_of(twice, middle * middle) : twice;
}

Value Taylor::quotient(NodeId id, std::size_t k) {
  const Node node = rules_.node(id);
  const ValueId a = node.operands[0];
  const ValueId b = node.operands[1];
  Value moved;
  for (std::size_t j = 0; j < k; ++j) {
    const Value q = coefficient({id, 0}, j);
    const Value c = coefficient(b, k - j);
    if (q.valid() && c.valid()) moved = sum_of(moved, q * c);
  }
  Value top = rules_.moving_operands(node)[0] ? coefficient(a, k) : Value();
  if (moved.valid()) top = top.valid() ? top - moved : -moved;
  return top.valid() ? top / value_or_zero(b) : top;
}

Series Taylor::series(ValueId old) {
  Series out;
  const ValueId v{mirrored_[old.node].node, old.result};
  for (std::size_t k = 1; k <= order_; ++k) out.push_back(coefficient(v, k));
  while (!out.empty() && !out.back().valid()) out.pop_back();
  return out;
}

Transformed Taylor::finish(const std::vector<Value>& outputs) {
  graph().set_outputs(outputs);
  return {std::move(graph()), build_.id_map(), {}};
}

}  // namespace ricci
