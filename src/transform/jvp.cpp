#include "ricci/transform/jvp.h"

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/ir/rebuild.h"
#include "ricci/rule/body_transforms.h"

#include "transform/autodiff_errors.h"
#include "transform/forward.h"
#include "transform/leaves.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

void require_tangent(const std::string& name, const Type& type) {
  if (has_derivative(type.dtype)) return;
  throw AutodiffError(ErrorCode::NoGradient,
                      fmt::format("'{}' is {} and has no tangent", name, type.to_string()),
                      "only floating and complex values have one");
}

}  // namespace

Transformed jvp(const Graph& graph, const std::vector<ValueRef>& tangent_for) {
  Forward forward(graph);
  forward.copy_leaves();
  std::map<std::string, std::string, std::less<>> names;
  for (const std::string& leaf : leaf_names(graph, tangent_for)) {
    const ValueId v{graph.find_or_throw(leaf), 0};
    const Type& type = graph.type(v);
    require_tangent(leaf, type);
    const std::string name = "tangent_" + leaf;
    if (names.contains(name)) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' is listed twice", leaf));
    }
    const std::string chosen = forward.graph().unique_name(name);
    names[name] = chosen;
    forward.set_tangent(v, forward.graph().input(chosen, type));
  }
  with_autodiff_errors([&] { forward.sweep(); });
  std::vector<Value> outputs;
  for (const ValueId v : graph.outputs()) outputs.push_back(forward.value(v));
  for (const ValueId v : graph.outputs()) outputs.push_back(forward.tangent_or_zero(v));
  Transformed t = forward.finish(outputs);
  t.graph.set_name(graph.name() + "_jvp");
  t.names = std::move(names);
  return tidied(std::move(t));
}

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

bool is_constant(const Node& node) { return node.op.is<op::Constant>(); }

}  // namespace

Linearized linearize(const Graph& graph, const std::vector<ValueRef>& tangent_for) {
  Transformed both = jvp(graph, tangent_for);
  std::vector<std::string> directions;
  for (const auto& [conventional, chosen] : both.names) directions.push_back(chosen);
  const std::vector<bool> linear = depending_on(both.graph, directions);
  const std::size_t outputs = graph.outputs().size();

  // The linear half: what depends on a direction. What it reads of the rest are residuals.
  Graph tangent(graph.name() + "_tangent", graph.registry());
  IdMap map(both.graph);
  std::vector<ValueId> residuals;
  const auto here = [&](ValueId v) {
    if (const auto known = map(v)) return *known;
    const Node& node = both.graph.node(v.node);
    if (is_constant(node)) {
      map.set(v, {tangent.append(node), 0});
    } else {
      const std::string name = fmt::format("residual_{}", residuals.size());
      map.set(v, tangent.input(tangent.unique_name(name), node.types[v.result]).id());
      residuals.push_back(v);
    }
    return map(v).value();
  };
  // Residuals are inputs, so they are found before the directions are added.
  for (NodeId id = 0; id < both.graph.size(); ++id) {
    if (!linear[id]) continue;
    for (const ValueId v : both.graph.nodes()[id].operands) {
      if (!linear[v.node]) (void)here(v);
    }
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    const ValueId v = both.graph.outputs()[outputs + i];
    if (!linear[v.node]) (void)here(v);
  }
  for (NodeId id = 0; id < both.graph.size(); ++id) {
    if (!linear[id]) continue;
    Node node = both.graph.nodes()[id];
    for (ValueId& v : node.operands) v = here(v);
    const std::size_t results = node.types.size();
    const NodeId now = tangent.append(std::move(node));
    for (std::uint32_t r = 0; r < results; ++r) map.set({id, r}, {now, r});
  }
  std::vector<ValueId> tangents;
  for (std::size_t i = 0; i < outputs; ++i) {
    tangents.push_back(here(both.graph.outputs()[outputs + i]));
  }
  tangent.set_outputs(std::move(tangents));

  // The other half: the graph's outputs, then the residuals.
  std::vector<ValueId> primals(both.graph.outputs().begin(),
                               both.graph.outputs().begin() + static_cast<std::ptrdiff_t>(outputs));
  primals.insert(primals.end(), residuals.begin(), residuals.end());
  Rebuilder build(both.graph);
  for (NodeId id = 0; id < both.graph.size(); ++id) {
    if (!linear[id]) build.copy(id);
  }
  std::vector<ValueId> ids;
  for (const ValueId v : primals) ids.push_back(build(v));
  Graph primal = std::move(build.to());
  primal.set_outputs(std::move(ids));
  primal.set_name(graph.name() + "_primal");
  Transformed half{std::move(primal), both.map.then(build.id_map()), {}};
  return {tidied(std::move(half)), std::move(tangent), residuals.size()};
}

}  // namespace ricci
