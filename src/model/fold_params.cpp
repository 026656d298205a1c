#include <algorithm>

#include <fmt/format.h>

#include "ricci/model/quantization.h"
#include "ricci/op/ops.h"

#include "model/param_graphs.h"
#include "model/product_layers.h"
#include "rewrite/params_alone.h"

namespace ricci {
namespace {

std::int64_t bytes_of(const Type& type) { return type.numel().value_or(0) * size_of(type.dtype); }

// What to compute once, and what stays in the graph.
class FoldPlan {
 public:
  FoldPlan(const Graph& graph, const Feeds& params)
      : graph_(graph), alone_(params_alone(graph)), keep_(graph.size(), false) {
    forget_unfed(params);
    for (const ValueId v : graph.outputs()) read(v);
    for (std::size_t id = graph.size(); id-- > 0;) {
      const Node& node = graph.nodes()[id];
      if (!alone_[id] || node.op.is<op::Input>()) keep_[id] = true;
      if (!keep_[id]) continue;
      for (const ValueId v : node.operands) read(v);
    }
    std::ranges::sort(folded_);
  }

  [[nodiscard]] const std::vector<ValueId>& folded() const { return folded_; }
  [[nodiscard]] bool keeps(NodeId id) const { return keep_[id]; }

 private:
  // A param without a value, and what depends on it, is no constant here.
  void forget_unfed(const Feeds& params) {
    for (NodeId id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.nodes()[id];
      if (node.op.is<op::Param>()) {
        alone_[id] = params.contains(*node.leaf_name());
      } else if (alone_[id] && !node.operands.empty()) {
        alone_[id] = std::ranges::all_of(node.operands, [&](ValueId v) { return alone_[v.node]; });
      }
    }
  }

  void read(ValueId v) {
    if (!alone_[v.node] || keep_[v.node]) return;
    const Node& node = graph_.nodes()[v.node];
    const bool foldable = !node.operands.empty() && node.types.size() == 1 && pays(node);
    if (!foldable) {
      keep_[v.node] = true;
    } else if (std::ranges::find(folded_, v) == folded_.end()) {
      folded_.push_back(v);
    }
  }

  [[nodiscard]] bool pays(const Node& node) const {
    if (!node.types[0].is_static()) return false;
    std::int64_t from = 0;
    bool has_params = false;
    for (const ValueId leaf : leaves_of(graph_, node)) {
      from += bytes_of(graph_.type(leaf));
      has_params = has_params || graph_.node(leaf.node).op.is<op::Param>();
    }
    return has_params && bytes_of(node.types[0]) <= from;
  }

  const Graph& graph_;
  std::vector<bool> alone_;
  std::vector<bool> keep_;
  std::vector<ValueId> folded_;
};

}  // namespace

std::vector<ValueId> leaves_of(const Graph& graph, const Node& node) {
  std::vector<ValueId> out;
  std::vector<bool> seen(graph.size(), false);
  std::vector<ValueId> open(node.operands);
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (seen[v.node]) continue;
    seen[v.node] = true;
    const Node& at = graph.node(v.node);
    if (at.operands.empty()) out.push_back(v);
    open.insert(open.end(), at.operands.begin(), at.operands.end());
  }
  return out;
}

std::string first_param(const Graph& graph, const Node& node) {
  std::vector<ValueId> leaves = leaves_of(graph, node);
  std::ranges::sort(leaves);
  for (const ValueId v : leaves) {
    if (graph.node(v.node).op.is<op::Param>()) return *graph.node(v.node).leaf_name();
  }
  return "param";
}

FoldedParams read_params(const Graph& graph, const Feeds& params) {
  FoldedParams out{graph, {}, {}};
  Rebuilder rebuild(graph);
  const std::vector<std::size_t> uses = graph.use_counts();
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (!node.op.is<op::Param>()) {
      rebuild.copy(id);
    } else if (uses[id] > 0) {
      rebuild.copy(id);
      if (const auto given = params.find(*node.leaf_name()); given != params.end()) {
        out.params.insert(*given);
      }
    }
  }
  out.graph = rebuild.finish();
  out.map = rebuild.id_map();
  return out;
}

FoldedParams fold_params(const Graph& graph, const Feeds& params) {
  const FoldPlan plan(graph, params);
  const std::vector<Tensor> values = evaluate_params(graph, plan.folded(), params);
  FoldedParams out{graph, {}, {}};
  Rebuilder rebuild(graph);
  std::size_t next = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.nodes()[id];
    if (next < values.size() && plan.folded()[next].node == id) {
      const std::string base =
          node.names[0].empty() ? first_param(graph, node) + "_folded" : node.names[0];
      std::string name = rebuild.to().unique_name(base);
      // A param of the old graph that comes later keeps its name.
      for (int n = 2; graph.find(name); ++n) {
        name = rebuild.to().unique_name(fmt::format("{}_{}", base, n));
      }
      rebuild.map({id, 0}, rebuild.to().param(name, node.types[0]));
      out.params.emplace(name, values[next++]);
    } else if (plan.keeps(id)) {
      rebuild.copy(id);
      const auto given = node.op.is<op::Param>() ? params.find(*node.leaf_name()) : params.end();
      if (given != params.end()) out.params.insert(*given);
    }
  }
  out.graph = rebuild.finish();
  out.map = rebuild.id_map();
  return out;
}

}  // namespace ricci
