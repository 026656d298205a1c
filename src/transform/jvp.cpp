#include "ricci/transform/jvp.h"

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/rule/body_transforms.h"

#include "transform/autodiff_errors.h"
#include "transform/forward.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

// The leaf a tangent is asked for.
NodeId perturbed_leaf(const Graph& graph, const ValueRef& ref) {
  const ValueId v = ref.in(graph);
  const Node& node = graph.node(v.node);
  if (!node.op.is<op::Input>() && !node.op.is<op::Param>()) {
    throw UserError(ErrorCode::Name,
                    fmt::format("a tangent can be given for an input or a param, but '{}' is "
                                "computed",
                                node.op.mnemonic()));
  }
  if (!has_derivative(node.types[0].dtype)) {
    throw AutodiffError(
        ErrorCode::NoGradient,
        fmt::format("a tangent cannot be given for a value of type {}", node.types[0].to_string()),
        "only floating and complex values have one");
  }
  return v.node;
}

std::string leaf_name(const Node& node) {
  if (const auto* in = node.op.as<op::Input>()) return in->name;
  return node.op.as<op::Param>()->name;
}

}  // namespace

Transformed jvp(const Graph& graph, const std::vector<ValueRef>& tangent_for) {
  Forward forward(graph);
  forward.copy_leaves();
  std::map<std::string, std::string, std::less<>> names;
  for (const ValueRef& ref : tangent_for) {
    const NodeId leaf = perturbed_leaf(graph, ref);
    const std::string name = "tangent_" + leaf_name(graph.node(leaf));
    if (names.contains(name)) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' is listed twice", name.substr(8)));
    }
    const std::string chosen = forward.graph().unique_name(name);
    names[name] = chosen;
    forward.set_tangent({leaf, 0}, forward.graph().input(chosen, graph.node(leaf).types[0]));
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

}  // namespace ricci
