#include "ricci/transform/higher_order.h"

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/body_transforms.h"
#include "ricci/transform/error.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "transform/leaves.h"
#include "transform/names.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

std::vector<ValueRef> refs(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

}  // namespace

Transformed hvp(const Graph& forward, const std::vector<ValueRef>& wrt, const HvpOptions& options) {
  const std::vector<std::string> names = leaf_names(forward, wrt);
  const Transformed gradient = options.external_seed
                                   ? grad_with_loss_opts(forward, refs(names), options.grad)
                                   : value_and_grad(forward, refs(names), options.grad);
  Transformed out = jvp(gradient.graph, refs(names));
  out.map = gradient.map.then(out.map);
  for (const auto& [conventional, chosen] : gradient.names) out.names.emplace(conventional, chosen);
  out.graph.set_name(forward.name() + "_hvp");
  OutputNames called;
  called.keep(gradient.graph);
  called.add_each("tangent of", forward);
  for (const std::string& name : names) called.add("Hessian-vector product by " + name);
  called.give_to(out.graph);
  return out;
}

namespace {

Transformed finish(SharedLeaves& leaves, const Graph& from, const std::vector<Value>& outputs) {
  Transformed t{leaves.finish(outputs), {}, {}};
  t.map = map_leaves(from, t.graph);
  return tidied(std::move(t));
}

// What depends on `at` only, with `at` as an input of its own.
Graph cut_at(const Graph& graph, ValueId at, std::string& name) {
  Rebuilder build(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    build.copy(id);
    if (id != at.node) continue;
    name = build.to().unique_name("at");
    while (graph.find(name)) name += "_";
    build.map(at, build.to().input(name, graph.type(at)));
  }
  return build.finish();
}

}  // namespace

Transformed gauss_newton_product(const Graph& graph, const std::vector<ValueRef>& wrt,
                                 const ValueRef& at) {
  const std::vector<std::string> names = leaf_names(graph, wrt);
  const ValueId z = at.in(graph);
  if (graph.outputs().empty()) {
    throw UserError(ErrorCode::Shape, fmt::format("the graph '{}' has no output", graph.name()));
  }
  const Graph model = with_outputs(graph, {z});
  std::string cut_name;
  const Graph loss = cut_at(with_outputs(graph, {graph.outputs()[0]}), z, cut_name);

  SharedLeaves leaves(graph, graph.name() + "_gauss_newton");
  Transformed result;
  // J v
  const Transformed pushed = jvp(model, refs(names));
  NamedValues directions;
  for (const std::string& name : names) {
    const Type type = graph.type({graph.find_or_throw(name), 0});
    const std::string conventional = "tangent_" + name;
    const Value v = leaves.add_input(conventional, type);
    directions[pushed.names.at(conventional)] = v;
    result.names[conventional] = v.graph().node(v.id().node).op.as<op::Input>()->name;
  }
  const std::vector<Value> z_and_tangent = leaves.include(pushed.graph, directions);
  // H J v: loss, dz, t_loss, t_dz
  const Transformed curved =
      hvp(loss, {cut_name}, {.external_seed = false, .grad = GradOptions::strict()});
  const std::vector<Value> bent = leaves.include(
      curved.graph,
      {{cut_name, z_and_tangent[0]}, {curved.names.at("tangent_" + cut_name), z_and_tangent[1]}});
  // Jᵀ H J v
  const Transformed pulled =
      grad(model, refs(names), {.zero_missing_wrt = true, .external_seed = true});
  const std::vector<Value> products =
      leaves.include(pulled.graph, {{pulled.names.at("d_output"), bent[3]}});
  std::vector<Value> outputs{bent[0]};
  outputs.insert(outputs.end(), products.begin(), products.end());
  Transformed done = finish(leaves, graph, outputs);
  OutputNames called;
  called.add(graph.output_names()[0]);
  for (const std::string& name : names) called.add("Gauss-Newton product by " + name);
  called.give_to(done.graph);
  done.names = std::move(result.names);
  return done;
}

}  // namespace ricci
