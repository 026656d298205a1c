#include "ricci/compiler/rewrite/canonicalize.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/op/ops.h"
#include "ricci/support/stop.h"

#include "rewrite/changes.h"
#include "rewrite/rule.h"
#include "support/float_environment.h"
#include "support/phases.h"

namespace ricci {
namespace {

// What is easier for later passes weighs less, so that turning one into the other is progress.
std::uint64_t weight(const Op& op) {
  if (op.is<op::Constant>()) return 0;
  if (op.is<op::Reshape>()) return 1;
  if (op.is<op::Expand>()) return 2;
  if (op.is<op::Transpose>() || op.is<op::Unary>()) return 3;
  return 4;
}

// Control flow that reads nothing still has bodies to simplify.
bool is_leaf(const Node& node) { return node.operands.empty() && node.bodies.empty(); }

struct Measured {
  std::uint64_t cost = 0;
  std::uint64_t depth = 0;  // of the deepest output
};

// A body counts as if it stood where its node stands, so that writing it out never costs.
Measured measure(const Graph& graph, std::uint64_t base) {
  Measured total;
  std::vector<std::uint64_t> depth(graph.size(), base);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    std::uint64_t deepest = base;
    for (const ValueId v : node.operands) {
      deepest = std::max(deepest, depth[v.node]);
      total.cost += 1 + depth[v.node];
    }
    total.cost += weight(node.op);
    if (is_leaf(node)) continue;
    std::uint64_t inside = deepest;
    for (const Body& body : node.bodies) {
      const Measured inner = measure(*body.graph, deepest);
      total.cost += inner.cost;
      inside = std::max(inside, inner.depth);
    }
    depth[id] = 1 + inside;
  }
  for (const ValueId v : graph.outputs()) total.depth = std::max(total.depth, depth[v.node]);
  return total;
}

// One walk over a graph that applies rules wherever they match.
class Sweep {
 public:
  explicit Sweep(const Graph& graph) : graph_(graph), rebuild_(graph) {}

  Change run() {
    for (NodeId id = 0; id < graph_.size(); ++id) visit(id);
    if (!changed_) return std::nullopt;
    return finished(rebuild_);
  }
  [[nodiscard]] std::string_view last_rule() const { return last_rule_; }

 private:
  void visit(NodeId id) {
    const Node& node = graph_.nodes()[id];
    if (is_leaf(node)) {
      rebuild_.copy(id);
      return;
    }
    Replacement values;
    std::vector<Body> bodies;
    if (node.bodies.empty()) {
      values = rewrite(node, rebuild_.operands(node));
    } else {
      bodies = map_bodies(node, canonicalize, changed_);
      Node root = node;
      root.bodies = bodies;
      values = rewrite(root, rebuild_.operands(node));
    }
    if (!values) {
      rebuild_.copy(id, std::move(bodies));
      return;
    }
    changed_ = true;
    for (std::uint32_t r = 0; r < node.types.size(); ++r) {
      rebuild_.map({id, r}, (*values)[r]);
      keep_name(node.names[r], (*values)[r]);
    }
  }

  // Applies rules to a node and then to what they made of it, while it is a node they made.
  Replacement rewrite(const Node& root, std::vector<Value> operands) {
    std::size_t before = rebuild_.to().size();
    Replacement found = apply_one(root, operands);
    while (found && found->size() == 1 && (*found)[0].id().node >= before) {
      const Node made = rebuild_.to().node((*found)[0].id().node);
      if (made.operands.empty() || made.types.size() != 1 || !made.bodies.empty()) break;
      operands.clear();
      for (const ValueId v : made.operands) operands.push_back(rebuild_.to().value(v));
      before = rebuild_.to().size();
      const Replacement next = apply_one(made, operands);
      if (!next) break;
      found = next;
    }
    return found;
  }

  Replacement apply_one(const Node& root, const std::vector<Value>& operands) {
    Provenance from = root.provenance ? *root.provenance : Provenance{};
    if (from.origin.empty()) from.origin = "canonicalize";
    const ProvenanceScope scope(rebuild_.to(), std::move(from));
    Rewriter rewriter(rebuild_.to(), root, operands);
    for (const Rule& rule : structure_rules()) {
      if (rule.root != root.op.kind()) continue;
      if (Replacement found = rule.apply(rewriter)) {
        last_rule_ = rule.name;
        return found;
      }
    }
    if (!root.op.has(Trait::Elementwise)) return std::nullopt;
    return apply_algebra(rewriter, last_rule_);
  }

  // Inputs and parameters are the caller's, and keep the names they came with.
  void keep_name(const std::string& name, Value v) {
    const Node& node = rebuild_.to().node(v.id().node);
    if (node.op.is<op::Input>() || node.op.is<op::Param>()) return;
    if (node.names[v.id().result].empty()) v.named(name);
  }

  const Graph& graph_;
  Rebuilder rebuild_;
  bool changed_ = false;
  std::string_view last_rule_;
};

}  // namespace

Value Rewriter::fit(Value v) {
  if (v.dims() == type().dims) return v;
  return build(op::Expand{type().dims}, {v});
}

Value Rewriter::number(double value) {
  if (type().is_static()) return graph_.constant(Tensor::splat(type(), value));
  return graph_.constant(Tensor::splat(type().with(Dims{}), value));
}

Change apply_rules(const Graph& graph) {
  const Phase phase("rules");
  const DefaultFloatEnvironment floats;
  Changes changes(graph);
  changes.apply(drop_dead_code(graph));
  std::uint64_t cost = rewrite_measure(changes.graph());
  for (;;) {
    throw_if_stopped();
    Sweep sweep(changes.graph());
    if (!changes.apply(sweep.run())) return changes.take();
    changes.apply(drop_dead_code(changes.graph()));
    const std::uint64_t now = rewrite_measure(changes.graph());
    if (now >= cost) {
      throw InternalError(fmt::format("the rewrite rule '{}' makes no progress on the graph '{}'",
                                      sweep.last_rule(), graph.name()));
    }
    cost = now;
  }
}

PassResult canonicalize(const Graph& graph) { return or_unchanged(graph, apply_rules(graph)); }

std::span<const RuleInfo> rewrite_rules() {
  static const std::vector<RuleInfo> rules = [] {
    std::vector<RuleInfo> out;
    for (const Rule& r : structure_rules()) out.push_back({r.name, r.identity});
    list_algebra(out);
    return out;
  }();
  return rules;
}

std::uint64_t rewrite_measure(const Graph& graph) { return measure(graph, 0).cost; }

}  // namespace ricci
