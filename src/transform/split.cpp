#include "transform/split.h"

#include <fmt/format.h>

#include "ricci/ir/inline_into.h"
#include "ricci/ir/rebuild.h"
#include "ricci/transform/split.h"

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

class Split {
 public:
  Split(const Graph& graph, const Transformed& both, const HalvesOptions& options)
      : graph_(graph),
        both_(both.graph),
        options_(options),
        outputs_(graph.outputs().size()),
        linear_(depending_on(both_, directions(both))) {}

  // What depends on a direction. What it reads of the rest are residuals.
  [[nodiscard]] Graph second_half() {
    Graph tangent(graph_.name() + options_.second_suffix, graph_.registry());
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
    for (std::size_t i = 0; i + outputs_ < both_.outputs().size(); ++i) {
      tangent.set_output_name(i, both_.given_output_name(outputs_ + i));
    }
    return tangent;
  }

  // The graph's outputs, then the residuals.
  [[nodiscard]] Transformed first_half(const IdMap& to_both) const {
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
    for (std::size_t i = 0; i < outputs_; ++i) {
      out.set_output_name(i, both_.given_output_name(i));
    }
    out.set_name(graph_.name() + options_.first_suffix);
    return {std::move(out), std::move(map), {}};
  }

  [[nodiscard]] const std::vector<std::string>& reads() const noexcept { return reads_; }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }

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
    if (options_.leaves_by_name && node.is_leaf()) {
      reads_.push_back(*node.leaf_name());
      map.set(v, {tangent.append(node), 0});
      return;
    }
    std::string name = fmt::format("residual_{}", residuals_.size());
    while (tangent.find(name) || both_.find(name)) name += '_';
    map.set(v, tangent.input(name, node.types[v.result]).id());
    residuals_.push_back(v);
    names_.push_back(name);
    reads_.push_back(std::move(name));
  }

  const Graph& graph_;
  const Graph& both_;
  const HalvesOptions& options_;
  std::size_t outputs_;
  std::vector<bool> linear_;
  std::vector<ValueId> residuals_;
  std::vector<std::string> names_;  // of the residuals
  std::vector<std::string> reads_;  // and of leaves among them
};

}  // namespace

SplitHalves split_in_two(const Graph& graph, const Transformed& both,
                         const HalvesOptions& options) {
  Split split(graph, both, options);
  Graph second = split.second_half();
  return {tidied(split.first_half(both.map)), std::move(second), split.reads(), split.names()};
}

SplitGradient split_vjp(const Graph& forward, const std::vector<ValueRef>& wrt,
                        const GradOptions& options) {
  SplitHalves halves = split_in_two(
      forward, vjp(forward, wrt, options),
      {.first_suffix = "_forward", .second_suffix = "_backward", .leaves_by_name = true});
  return {std::move(halves.first), std::move(halves.second), std::move(halves.residuals)};
}

}  // namespace ricci
