#include "transform/rule_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/compiler/rule/vjp.h"
#include "ricci/op/table.h"
#include "ricci/support/hash.h"

#include "ir/draws_numbers.h"
#include "rule/control/influence.h"
#include "rule/guards.h"
#include "transform/leaves.h"

namespace ricci {
namespace {

// Nodes that are no other's equal.
bool is_unique(const Node& node) { return node.is_leaf() || draws_numbers(node); }

bool passes_derivatives(const Node& node) {
  return descriptor(node.op.kind()).jvp != RuleSource::Zero;
}

}  // namespace

RuleGraph::RuleGraph(const Graph& like) : graph_(like.name(), like.registry()) {
  graph_.reserve_keys(like.next_key());
}

NodeId RuleGraph::mirror(const Node& node, std::vector<ValueId> operands) {
  Node copy = node;
  copy.operands = std::move(operands);
  const NodeId id = graph_.append(std::move(copy));
  merge_new();
  return same_as_[id];
}

void RuleGraph::merge_new() {
  for (auto id = static_cast<NodeId>(same_as_.size()); id < graph_.size(); ++id) {
    same_as_.push_back(id);
    const Node& added = node(id);
    std::vector<bool>& marks = moves_.emplace_back(added.types.size(), false);
    std::vector<bool> moving;
    for (const ValueId v : added.operands) moving.push_back(moves(v));
    if (std::ranges::find(moving, true) != moving.end()) {
      marks = rule::reached_results(graph_, added, moving);
    }
    if (is_unique(added)) continue;
    const auto chosen =
        rule::always_chosen(graph_, added, [this](ValueId v) { return resolved(v); });
    if (chosen && chosen->result == 0) {
      same_as_[id] = chosen->node;
      continue;
    }
    std::vector<NodeId>& bucket = seen_[key_of(added)];
    const auto earlier =
        std::ranges::find_if(bucket, [&](NodeId e) { return same(node(e), added); });
    if (earlier != bucket.end()) {
      same_as_[id] = *earlier;
    } else {
      bucket.push_back(id);
    }
  }
}

std::uint64_t RuleGraph::key_of(const Node& added) const {
  Hasher h;
  h.add(added.op.hash());
  for (const ValueId v : added.operands) {
    h.add((std::uint64_t{resolved(v).node} << 32) | v.result);
  }
  for (const Body& b : added.bodies) h.add(b.role).add(b.graph->hash());
  return h.value();
}

bool RuleGraph::same(const Node& a, const Node& b) const {
  const auto where = [this](ValueId v) { return resolved(v); };
  return a.types == b.types && a.wanted == b.wanted && a.op == b.op &&
         std::ranges::equal(a.operands, b.operands, {}, where, where) &&
         std::ranges::equal(a.bodies, b.bodies, [](const Body& x, const Body& y) {
           return x.role == y.role && (x.graph == y.graph || *x.graph == *y.graph);
         });
}

std::vector<Value> RuleGraph::operands(const Node& of) {
  std::vector<Value> out;
  for (const ValueId v : of.operands) out.push_back(graph_.value(resolved(v)));
  return out;
}

std::vector<bool> RuleGraph::moving_operands(const Node& of) const {
  std::vector<bool> out(of.operands.size(), false);
  const auto is_moving = [this](ValueId v) { return moves(v); };
  if (std::ranges::none_of(of.operands, is_moving)) return out;
  out = rule::leading_operands(graph_, of, std::vector<bool>(of.types.size(), true));
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = out[k] && moves(of.operands[k]);
  return out;
}

Value RuleGraph::rate(ValueId v) {
  const auto known = rates_.find(v);
  if (known != rates_.end()) return graph_.value(known->second);
  const std::string name = graph_.unique_name(fmt::format("rate_{}", rates_.size()));
  const Value leaf = graph_.input(name, tangent_type(graph_.type(v)));
  merge_new();
  mark_moving(leaf.id());
  rates_.emplace(v, leaf.id());
  rated_by_.emplace(leaf.id().node, v);
  return leaf;
}

const ValueId* RuleGraph::rated_by(NodeId id) const {
  const auto found = rated_by_.find(id);
  return found == rated_by_.end() ? nullptr : &found->second;
}

bool RuleGraph::depend_on_rates_only(const std::vector<Value>& values, NodeId first,
                                     const std::vector<Value>& rates) const {
  std::vector<bool> curved(graph_.size() - first, false);
  const auto is_curved = [&](ValueId v) {
    if (v.node >= first) return static_cast<bool>(curved[v.node - first]);
    const auto is_it = [&](const Value& rate) { return rate.valid() && rate.id() == v; };
    return moves(v) && std::ranges::none_of(rates, is_it);
  };
  for (NodeId id = first; id < graph_.size(); ++id) {
    const Node& added = node(id);
    if (!passes_derivatives(added)) continue;
    for (std::size_t k = 0; k < added.operands.size(); ++k) {
      const ValueId v = added.operands[k];
      if (is_curved(v) && carries_derivative(graph_.registry(), added, k, graph_.type(v)))
        curved[id - first] = true;
    }
  }
  return std::ranges::none_of(values,
                              [&](const Value& v) { return v.valid() && is_curved(v.id()); });
}

}  // namespace ricci
