#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/ir/inline_into.h"
#include "ricci/ir/rebuild.h"
#include "ricci/transform/jvp.h"

#include "transform/names.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

// Marks the nodes of a graph that depend on one of its inputs.
std::vector<bool> depending_on(const Graph& graph, const std::vector<std::string>& inputs) {
  std::vector<bool> marks(graph.size());
  for (const std::string& name : inputs) marks[graph.find_or_throw(name)] = true;
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const ValueId v : graph.nodes()[id].operands) marks[id] = marks[id] || marks[v.node];
  }
  return marks;
}

// Cuts a graph of values and tangents in two: what depends on a direction, and the rest.
class Split {
 public:
  Split(const Graph& graph, const Transformed& both)
      : graph_(graph),
        both_(both.graph),
        outputs_(graph.outputs().size()),
        linear_(depending_on(both_, directions(both))) {}

  // What depends on a direction. What it reads of the rest are residuals.
  [[nodiscard]] Graph tangent_half() {
    Graph tangent(graph_.name() + "_tangent", graph_.registry());
    IdMap map(both_);
    // Residuals are inputs, so they are found before the directions are added.
    for_each_read([&](ValueId v) { add_outer(v, tangent, map); });
    for (NodeId id = 0; id < both_.size(); ++id) {
      if (!linear_[id]) continue;
      Node node = both_.nodes()[id];
      for (ValueId& v : node.operands) v = map(v).value();
      const std::size_t results = node.types.size();
      const NodeId now = tangent.append(std::move(node));
      for (std::uint32_t r = 0; r < results; ++r) map.set({id, r}, {now, r});
    }
    std::vector<ValueId> tangents;
    for (const ValueId v : both_.outputs().subspan(outputs_)) tangents.push_back(map(v).value());
    tangent.set_outputs(std::move(tangents));
    return tangent;
  }

  // The graph's outputs, then the residuals.
  [[nodiscard]] Transformed primal_half(const IdMap& to_both) const {
    Rebuilder build(both_);
    for (NodeId id = 0; id < both_.size(); ++id) {
      if (!linear_[id]) build.copy(id);
    }
    Graph& primal = build.to();
    std::vector<ValueId> ids;
    std::vector<Value> whole;
    for (std::size_t i = 0; i < outputs_; ++i) {
      const ValueId v = both_.outputs()[i];
      if (!linear_[v.node]) {
        ids.push_back(build(v));
        continue;
      }
      // Control flow computes values and tangents in one node, which belongs to the other half; the
      // values alone are those of the graph as it was.
      if (whole.empty()) whole = inline_into(primal, graph_, leaves(primal), leaves(primal));
      ids.push_back(whole[i].id());
    }
    for (const ValueId v : residuals_) ids.push_back(build(v));
    IdMap map = to_both.then(build.id_map());
    Graph out = std::move(primal);
    out.set_outputs(std::move(ids));
    out.set_name(graph_.name() + "_primal");
    return {std::move(out), std::move(map), {}};
  }

  [[nodiscard]] std::size_t residuals() const noexcept { return residuals_.size(); }

 private:
  static std::vector<std::string> directions(const Transformed& both) {
    std::vector<std::string> out;
    for (const auto& [conventional, chosen] : both.names) out.push_back(chosen);
    return out;
  }

  static NamedValues leaves(Graph& graph) {
    NamedValues out;
    for (const NodeId id : graph.leaves()) {
      out.emplace(*graph.node(id).leaf_name(), graph.value({id, 0}));
    }
    return out;
  }

  // Everything the linear half reads that is not in it.
  template <class F>
  void for_each_read(F&& visit) const {
    const auto outer = [&](ValueId v) {
      if (!linear_[v.node]) visit(v);
    };
    for (NodeId id = 0; id < both_.size(); ++id) {
      if (!linear_[id]) continue;
      for (const ValueId v : both_.nodes()[id].operands) outer(v);
    }
    for (const ValueId v : both_.outputs().subspan(outputs_)) outer(v);
  }

  void add_outer(ValueId v, Graph& tangent, IdMap& map) {
    if (map(v)) return;
    const Node& node = both_.node(v.node);
    if (node.op.is<op::Constant>()) {
      map.set(v, {tangent.append(node), 0});
      return;
    }
    const std::string name = fmt::format("residual_{}", residuals_.size());
    map.set(v, tangent.input(tangent.unique_name(name), node.types[v.result]).id());
    residuals_.push_back(v);
  }

  const Graph& graph_;
  const Graph& both_;
  std::size_t outputs_;
  std::vector<bool> linear_;
  std::vector<ValueId> residuals_;
};

}  // namespace

Linearized linearize(const Graph& graph, const std::vector<ValueRef>& tangent_for) {
  const Transformed both = jvp(graph, tangent_for);
  Split split(graph, both);
  Graph tangent = split.tangent_half();
  return {tidied(split.primal_half(both.map)), std::move(tangent), split.residuals()};
}

}  // namespace ricci
