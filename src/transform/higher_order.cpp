#include "ricci/transform/higher_order.h"

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/rule/body_transforms.h"
#include "ricci/transform/error.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "transform/leaves.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

std::vector<ValueRef> refs(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

void require_single_element(const Graph& graph, ValueId v, std::string_view what,
                            std::string help) {
  const Type& type = graph.type(v);
  if (element_count(type).is(1)) return;
  throw UserError(ErrorCode::Shape,
                  fmt::format("{} must have a single element, but is {}", what, type.to_string()),
                  std::move(help));
}

// A complex derivative is two real ones unless the function is holomorphic: matrices of them would
// mean one thing in forward and another in reverse mode.
void require_real(const Graph& graph, const std::vector<std::string>& wrt) {
  const auto check = [](const Type& type) {
    if (!is_complex(type.dtype)) return;
    throw AutodiffError(ErrorCode::Refused,
                        fmt::format("a matrix of derivatives of or by {} is not defined in reverse "
                                    "mode",
                                    type.to_string()),
                        "jacfwd gives derivatives along real directions");
  };
  for (const ValueId v : graph.outputs()) check(graph.type(v));
  for (const std::string& name : wrt) check(graph.type({graph.find_or_throw(name), 0}));
}

// `source` with only its last `count` outputs.
Graph last_outputs(Graph graph, std::size_t count) {
  std::vector<ValueId> ids(graph.outputs().end() - static_cast<std::ptrdiff_t>(count),
                           graph.outputs().end());
  graph.set_outputs(std::move(ids));
  return graph;
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
  return out;
}

namespace {

// [n, *dims] as [elements, n]
Value as_columns(Value v) {
  Dims flat{v.dims()[0], 1};
  for (std::size_t i = 1; i < v.rank(); ++i) flat[1] = flat[1] * v.dims()[i];
  return transpose_last(reshape_to(v, flat));
}

// [m, *dims] as [m, elements]
Value as_rows(Value v) { return transpose_last(as_columns(v)); }

Transformed finish(SharedLeaves& leaves, const Graph& from, const std::vector<Value>& outputs) {
  Transformed t{leaves.finish(outputs), {}, {}};
  t.map = map_leaves(from, t.graph);
  return tidied(std::move(t));
}

}  // namespace

Transformed jacfwd(const Graph& graph, const std::vector<ValueRef>& wrt) {
  const std::vector<std::string> names = leaf_names(graph, wrt);
  const std::size_t outputs = graph.outputs().size();
  SharedLeaves leaves(graph, graph.name() + "_jacfwd");
  std::vector<std::vector<Value>> columns;  // per wrt, per output
  for (const std::string& name : names) {
    const Transformed tangents = jvp(graph, {name});
    const std::string& direction = tangents.names.at("tangent_" + name);
    const Type type = graph.type({graph.find_or_throw(name), 0});
    const Transformed all =
        vmap(last_outputs(tangents.graph, outputs), {{direction}}, element_count(type));
    columns.push_back(leaves.include(all.graph, {{direction, unit_rows(leaves.graph(), type)}}));
  }
  std::vector<Value> matrices;
  for (std::size_t i = 0; i < outputs; ++i) {
    for (const std::vector<Value>& column : columns) matrices.push_back(as_columns(column[i]));
  }
  return finish(leaves, graph, matrices);
}

Transformed jacrev(const Graph& graph, const std::vector<ValueRef>& wrt) {
  const std::vector<std::string> names = leaf_names(graph, wrt);
  require_real(graph, names);
  SharedLeaves leaves(graph, graph.name() + "_jacrev");
  std::vector<Value> matrices;
  for (const ValueId output : graph.outputs()) {
    const Type type = graph.type(output);
    if (!is_differentiable(type.dtype)) {
      for (const std::string& name : names) {
        const Type& by = graph.type({graph.find_or_throw(name), 0});
        matrices.push_back(
            filled(leaves.graph(), type.with(Dims{element_count(type), element_count(by)}), 0));
      }
      continue;
    }
    const Transformed gradient =
        grad(with_outputs(graph, {output}), refs(names), GradOptions::training());
    const std::string& seed = gradient.names.at("d_output");
    const Transformed all = vmap(gradient.graph, {{seed}}, element_count(type));
    for (const Value& rows : leaves.include(all.graph, {{seed, unit_rows(leaves.graph(), type)}})) {
      matrices.push_back(cast_to(as_rows(rows), type.dtype));
    }
  }
  return finish(leaves, graph, matrices);
}

Transformed hessian(const Graph& graph, const std::vector<ValueRef>& wrt) {
  const std::vector<std::string> names = leaf_names(graph, wrt);
  if (graph.outputs().empty()) {
    throw UserError(ErrorCode::Shape, fmt::format("the graph '{}' has no output", graph.name()));
  }
  require_single_element(graph, graph.outputs()[0], "the first output",
                         "use jacfwd or jacrev for an output of several elements");
  require_real(graph, names);
  const Transformed gradient = value_and_grad(with_outputs(graph, {graph.outputs()[0]}),
                                              refs(names), GradOptions::training());
  Transformed out = jacfwd(last_outputs(gradient.graph, names.size()), refs(names));
  out.map = gradient.map.then(out.map);
  out.graph.set_name(graph.name() + "_hessian");
  return out;
}

namespace {

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
  const Transformed pulled = grad(model, refs(names), GradOptions::training());
  const std::vector<Value> products =
      leaves.include(pulled.graph, {{pulled.names.at("d_output"), bent[3]}});
  std::vector<Value> outputs{bent[0]};
  outputs.insert(outputs.end(), products.begin(), products.end());
  Transformed done = finish(leaves, graph, outputs);
  done.names = std::move(result.names);
  return done;
}

}  // namespace ricci
