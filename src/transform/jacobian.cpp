// Whole Jacobians and Hessians, one pass per element, batched.
//
// Of complex values: ∂y/∂z where both are complex and y is holomorphic, ∂y/∂z̄ for a real y, ∂y/∂x
// for a real x. Two passes, along 1 and along i, tell what one does not.
#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/body_transforms.h"
#include "ricci/transform/error.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

#include "transform/holomorphic.h"
#include "transform/leaves.h"
#include "transform/names.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

std::vector<ValueRef> refs_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

// `source` with only its last `count` outputs.
Graph last_outputs(Graph graph, std::size_t count) {
  std::vector<ValueId> ids(graph.outputs().end() - static_cast<std::ptrdiff_t>(count),
                           graph.outputs().end());
  graph.set_outputs(std::move(ids));
  return graph;
}

// [n, *dims] as [elements, n]
Value as_columns(Value v) {
  Dims flat{v.dims()[0], 1};
  for (std::size_t i = 1; i < v.rank(); ++i) flat[1] = flat[1] * v.dims()[i];
  return transpose_last(reshape_to(v, flat));
}

// [m, *dims] as [m, elements]
Value as_rows(Value v) { return transpose_last(as_columns(v)); }

Transformed finished_matrices(SharedLeaves& leaves, const Graph& from,
                              const std::vector<Value>& outputs) {
  Transformed t{leaves.finish(outputs), {}, {}};
  t.map = map_leaves(from, t.graph);
  return tidied(std::move(t));
}

Type leaf_type(const Graph& graph, const std::string& leaf) {
  return graph.type({graph.find_or_throw(leaf), 0});
}

Value complex_number(Graph& graph, DType dtype, std::complex<double> z) {
  return graph.constant(Tensor::splat({dtype, {}}, z));
}

// ½·(a + s·i·b) as complex numbers
Value half_sum(Value a, Value b, double s, DType dtype) {
  const Value i = complex_number(a.graph(), dtype, {0, 0.5 * s});
  return cast_to(a, dtype) * complex_number(a.graph(), dtype, 0.5) + cast_to(b, dtype) * i;
}

// Along unit directions times `factor`: per output of the graph [elements of the leaf, *dims].
std::vector<Value> pushed_units(SharedLeaves& leaves, const Graph& graph, const std::string& name,
                                std::complex<double> factor) {
  const Transformed tangents = jvp(graph, {name});
  const std::string& direction = tangents.names.at("tangent_" + name);
  const Type type = leaf_type(graph, name);
  const Transformed all = vmap(last_outputs(tangents.graph, graph.outputs().size()), {{direction}},
                               element_count(type));
  Value units = unit_rows(leaves.graph(), type);
  if (factor != 1.0) units = units * complex_number(leaves.graph(), type.dtype, factor);
  return leaves.include(all.graph, {{direction, units}});
}

// What a column says about a complex leaf z.
enum class By : std::uint8_t { Conjugate, Number };

// By forward mode. Real outputs by a complex leaf, and all with By::Number, from two passes:
// ∂/∂z = ½(∂/∂x - i∂/∂y), ∂/∂z̄ = ½(∂/∂x + i∂/∂y).
std::vector<Value> forward_columns(SharedLeaves& leaves, const Graph& graph,
                                   const std::string& name, By by, bool holomorphic) {
  std::vector<Value> columns = pushed_units(leaves, graph, name, 1);
  const DType dtype = leaf_type(graph, name).dtype;
  std::vector<Value> turned;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool is_real = !is_complex(columns[i].dtype());
    const bool needs_both =
        is_complex(dtype) && is_differentiable(columns[i].dtype()) && (is_real || !holomorphic);
    if (needs_both) {
      if (turned.empty()) turned = pushed_units(leaves, graph, name, {0, 1});
      columns[i] = half_sum(columns[i], turned[i], by == By::Number ? -1 : 1,
                            promote(columns[i].dtype(), dtype));
    }
    columns[i] = as_columns(columns[i]);
  }
  return columns;
}

Transformed forward_matrices(const Graph& graph, const std::vector<std::string>& names, By by,
                             bool holomorphic, std::string_view suffix) {
  SharedLeaves leaves(graph, graph.name() + std::string(suffix));
  std::vector<std::vector<Value>> columns;  // per leaf, per output
  for (const std::string& name : names) {
    columns.push_back(forward_columns(leaves, graph, name, by, holomorphic));
  }
  std::vector<Value> matrices;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    for (const std::vector<Value>& column : columns) matrices.push_back(column[i]);
  }
  return finished_matrices(leaves, graph, matrices);
}

void require_holomorphic_pairs(const Graph& graph, const std::vector<std::string>& names) {
  for (const ValueId output : graph.outputs()) {
    if (!is_complex(graph.type(output).dtype)) continue;
    for (const std::string& name : names) {
      if (is_complex(leaf_type(graph, name).dtype)) require_holomorphic(graph, output, name);
    }
  }
}

// Cotangents of the leaves for unit seeds times `factor`: [elements of the output, *dims] each.
std::vector<Value> pulled_units(SharedLeaves& leaves, const Graph& graph, ValueId output,
                                const std::vector<std::string>& names,
                                std::complex<double> factor) {
  const Type type = graph.type(output);
  const Transformed gradient = grad(with_outputs(graph, {output}), refs_of(names),
                                    {.zero_missing_wrt = true, .external_seed = true});
  const std::string& seed = gradient.names.at("d_output");
  const Transformed all = vmap(gradient.graph, {{seed}}, element_count(type));
  Value units = unit_rows(leaves.graph(), type);
  if (factor != 1.0) units = units * complex_number(leaves.graph(), type.dtype, factor);
  return leaves.include(all.graph, {{seed, units}});
}

// The rows of one output. Of a complex one by z the conjugate of what a seed of 1 gives; by a real
// x, whose cotangents are 2·Re(conj(∂y/∂x)·seed), both parts from two seeds.
std::vector<Value> reverse_rows(SharedLeaves& leaves, const Graph& graph, ValueId output,
                                const std::vector<std::string>& names) {
  const Type type = graph.type(output);
  std::vector<Value> rows = pulled_units(leaves, graph, output, names, 1);
  std::vector<Value> turned;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const DType by = leaf_type(graph, names[k]).dtype;
    const DType dtype = promote(type.dtype, by);
    if (!is_complex(type.dtype)) {
      rows[k] = cast_to(as_rows(rows[k]), is_complex(by) ? dtype : type.dtype);
    } else if (is_complex(by)) {
      rows[k] = cast_to(conjugate(as_rows(rows[k])), dtype);
    } else {
      if (turned.empty()) turned = pulled_units(leaves, graph, output, names, {0, 1});
      rows[k] = half_sum(as_rows(rows[k]), as_rows(turned[k]), 1, type.dtype);
    }
  }
  return rows;
}

// For every output, for every leaf.
Transformed with_matrix_names(Transformed t, const Graph& graph,
                              const std::vector<std::string>& names) {
  OutputNames called;
  for (const std::string& output : graph.output_names()) {
    for (const std::string& name : names) {
      called.add(fmt::format("Jacobian of {} by {}", output, name));
    }
  }
  called.give_to(t.graph);
  return t;
}

}  // namespace

Transformed jacfwd(const Graph& graph, const std::vector<ValueRef>& wrt) {
  const std::vector<std::string> names = leaf_names(graph, wrt);
  require_holomorphic_pairs(graph, names);
  return with_matrix_names(forward_matrices(graph, names, By::Conjugate, true, "_jacfwd"), graph,
                           names);
}

Transformed jacrev(const Graph& graph, const std::vector<ValueRef>& wrt) {
  const std::vector<std::string> names = leaf_names(graph, wrt);
  require_holomorphic_pairs(graph, names);
  SharedLeaves leaves(graph, graph.name() + "_jacrev");
  std::vector<Value> matrices;
  for (const ValueId output : graph.outputs()) {
    const Type type = graph.type(output);
    if (!is_differentiable(type.dtype)) {
      for (const std::string& name : names) {
        const Dims dims{element_count(type), element_count(leaf_type(graph, name))};
        matrices.push_back(filled(leaves.graph(), type.with(dims), 0));
      }
      continue;
    }
    for (const Value& rows : reverse_rows(leaves, graph, output, names)) matrices.push_back(rows);
  }
  return with_matrix_names(finished_matrices(leaves, graph, matrices), graph, names);
}

// Of a real loss ∂²L/∂z̄∂z, of a holomorphic one ∂²f/∂z², whose first derivative is the conjugate
// of the cotangent for a seed of 1.
Transformed hessian(const Graph& graph, const std::vector<ValueRef>& wrt) {
  const std::vector<std::string> names = leaf_names(graph, wrt);
  if (graph.outputs().empty()) {
    throw UserError(ErrorCode::Shape, fmt::format("the graph '{}' has no output", graph.name()));
  }
  const ValueId output = graph.outputs()[0];
  const Type& type = graph.type(output);
  if (!element_count(type).is(1)) {
    throw UserError(
        ErrorCode::Shape,
        fmt::format("the first output must have a single element, but is {}", type.to_string()),
        "use jacfwd or jacrev for an output of several elements");
  }
  const Graph loss = with_outputs(graph, {output});
  const bool holomorphic = is_complex(type.dtype);
  if (holomorphic) {
    require_holomorphic_pairs(loss, names);
    for (const std::string& name : names) {
      if (is_complex(leaf_type(graph, name).dtype)) continue;
      throw AutodiffError(ErrorCode::Refused,
                          fmt::format("second derivatives of {} by '{}' ({}) are not defined",
                                      type.to_string(), name, leaf_type(graph, name).to_string()),
                          "take those of its real and its imaginary part");
    }
  }
  const Transformed gradient = value_and_grad(loss, refs_of(names), GradOptions::training());
  Graph first = last_outputs(gradient.graph, names.size());
  if (holomorphic) {
    std::vector<ValueId> derivatives;
    for (const ValueId v : first.outputs()) derivatives.push_back(conjugate(first.value(v)).id());
    first.set_outputs(std::move(derivatives));
  }
  Transformed out = forward_matrices(first, names, By::Number, holomorphic, "_jacfwd");
  out.map = gradient.map.then(out.map);
  out.graph.set_name(graph.name() + "_hessian");
  OutputNames called;
  for (const std::string& row : names) {
    for (const std::string& column : names)
      called.add(fmt::format("Hessian by {}, {}", row, column));
  }
  called.give_to(out.graph);
  return out;
}

}  // namespace ricci
