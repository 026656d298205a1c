// Derivatives in two halves: what depends on the point, and what is linear in a cotangent or
// tangent and can be called often.
#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/transform.h"
#include "ricci/support/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"

#include "array/node.h"
#include "array/transform_cache.h"
#include "transform/split.h"

namespace ricci::detail {
namespace {

// A graph of values and derivatives as two functions.
MadeFunctions in_two(const Graph& graph, const Transformed& both) {
  SplitHalves halves = split_in_two(
      graph, both,
      {.first_suffix = "_forward", .second_suffix = "_linear", .leaves_by_name = true});
  MadeFunctions out;
  out.functions.push_back(make_function(std::move(halves.first.graph)));
  out.functions.push_back(make_function(std::move(halves.second)));
  out.kept = std::move(halves.reads);
  out.residuals = std::move(halves.residuals);
  return out;
}

std::vector<ValueRef> differentiable_inputs(const Graph& g, std::size_t count) {
  const std::vector<NodeId> ports = g.leaves();
  std::vector<ValueRef> out;
  for (std::size_t k = 0; k < count; ++k) {
    if (is_differentiable(g.node(ports[k]).types[0].dtype)) {
      out.emplace_back(ValueId{ports[k], 0});
    }
  }
  return out;
}

Linearization put_together(const TracedFunction& f, std::span<const Array> args,
                           const MadeFunctions& made, std::source_location where) {
  std::vector<Array> all(args.begin(), args.end());
  all.insert(all.end(), f.captures.begin(), f.captures.end());
  const NamedArrays named = named_inputs(f.callee->graph, all);
  std::vector<Array> found = call_made(made.functions[0], named, where);
  const std::size_t values = f.callee->graph.outputs().size();
  Linearization out;
  out.map.function.callee = made.functions[1].callee;
  NamedArrays kept = named;
  for (std::size_t i = values; i < found.size(); ++i) {
    kept.emplace(made.residuals[i - values], found[i]);
  }
  for (const std::string& name : made.kept) out.map.residuals.push_back(kept.at(name));
  found.resize(values);
  out.values = std::move(found);
  out.map.takes = made.takes;
  return out;
}

}  // namespace

Linearization linearize_vjp(const TracedFunction& f, std::span<const Array> args,
                            std::source_location where) {
  const Graph& graph = f.callee->graph;
  const auto made = made_from(f.callee, fmt::format("vjp {}", args.size()), [&](const Graph& g) {
    MadeFunctions split =
        in_two(g, vjp(g, differentiable_inputs(g, args.size()), GradOptions::training()));
    for (const ValueId v : g.outputs()) split.takes.push_back(is_differentiable(g.type(v).dtype));
    return split;
  });
  Linearization out = put_together(f, args, *made, where);
  const std::vector<NodeId> ports = graph.leaves();
  for (std::size_t k = 0; k < args.size(); ++k) {
    out.map.types.push_back(graph.node(ports[k]).types[0]);
  }
  for (const ValueId v : graph.outputs()) out.map.given.push_back(graph.type(v));
  return out;
}

Linearization linearize_jvp(const TracedFunction& f, std::span<const Array> args,
                            std::source_location where) {
  const Graph& graph = f.callee->graph;
  const auto made =
      made_from(f.callee, fmt::format("linearize {}", args.size()), [&](const Graph& g) {
        MadeFunctions split = in_two(g, jvp(g, differentiable_inputs(g, args.size())));
        const std::vector<NodeId> ports = g.leaves();
        for (std::size_t k = 0; k < args.size(); ++k) {
          split.takes.push_back(is_differentiable(g.node(ports[k]).types[0].dtype));
        }
        return split;
      });
  Linearization out = put_together(f, args, *made, where);
  out.map.all_results = true;
  for (const ValueId v : graph.outputs()) out.map.types.push_back(graph.type(v));
  const std::vector<NodeId> ports = graph.leaves();
  for (std::size_t k = 0; k < args.size(); ++k) {
    out.map.given.push_back(graph.node(ports[k]).types[0]);
  }
  return out;
}

std::vector<Array> LinearMap::operator()(std::span<const Array> along,
                                         std::source_location where) const {
  if (along.size() != given.size()) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("{} arrays are given, {} are wanted", along.size(), given.size()));
  }
  std::vector<Array> operands = residuals;
  for (std::size_t i = 0; i < along.size(); ++i) {
    if (!takes[i]) continue;
    Array x = strengthened(along[i], given[i].dtype, where);
    if (x.type() != given[i]) {
      throw UserError(Diagnostic{
          .code = ErrorCode::Shape,
          .detail = "linear_map",
          .message = fmt::format("{} is given for {}", x.type().to_string(), given[i].to_string()),
          .where = SourcePosition::from(where),
          .notes = {},
          .help = "a cotangent has the type of the result, a tangent that "
                  "of the argument"});
    }
    operands.push_back(std::move(x));
  }
  std::vector<Array> found = call_node(function.callee, std::move(operands), where);
  if (all_results) return found;
  std::vector<Array> out;
  std::size_t next = 0;
  for (const Type& type : types) {
    out.push_back(is_differentiable(type.dtype) ? found[next++]
                                                : zeros(type.dims, {.dtype = type.dtype}, where));
  }
  return out;
}

}  // namespace ricci::detail
