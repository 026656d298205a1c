// Derivatives in two halves: what depends on the point, and what is linear in a cotangent or
// tangent and can be called often.
#include <fmt/format.h>

#include "ricci/array/create.h"
#include "ricci/array/transform.h"
#include "ricci/ir/rebuild.h"
#include "ricci/support/error.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/jvp.h"

#include "array/node.h"
#include "array/transform_cache.h"

namespace ricci::detail {
namespace {

// Which nodes depend on inputs that `is_new` names.
std::vector<bool> dependents(const Graph& g,
                             const std::function<bool(const std::string&)>& is_new) {
  std::vector<bool> out(g.size(), false);
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g.node(id);
    if (n.is_leaf()) {
      out[id] = is_new(*n.leaf_name());
      continue;
    }
    for (const ValueId v : n.operands) out[id] = out[id] || out[v.node];
  }
  return out;
}

// Splits a graph with `values` outputs that do not depend on the new inputs, and others that may.
class Splitter {
 public:
  Splitter(const Graph& whole, std::vector<bool> late)
      : whole_(whole), late_(std::move(late)), first_(whole), second_(whole) {}

  MadeFunctions split(std::size_t values) {
    MadeFunctions out;
    Graph forward(whole_.name());
    Graph linear(whole_.name());
    for (NodeId id = 0; id < whole_.size(); ++id) {
      if (!late_[id]) copy(forward, first_, id);
    }
    std::vector<ValueId> kept;
    const auto reach = [&](ValueId v) {
      if (late_[v.node] || second_(v)) return;
      const Node& n = whole_.node(v.node);
      if (n.operands.empty() && !n.is_leaf() && !n.op.has(Trait::Random)) {
        copy(linear, second_, v.node);  // constants are written out in both
        return;
      }
      const std::string name =
          n.is_leaf() ? *n.leaf_name() : fmt::format("residual.{}", kept.size());
      second_.set(v, linear.input(name, n.types[v.result]).id());
      out.kept.push_back(name);
      if (!n.is_leaf()) kept.push_back(*first_(v));
    };
    const std::span<const ValueId> outputs = whole_.outputs();
    for (NodeId id = 0; id < whole_.size(); ++id) {
      if (!late_[id]) continue;
      for (const ValueId v : whole_.node(id).operands) reach(v);
    }
    for (const ValueId v : outputs.subspan(values)) reach(v);
    for (NodeId id = 0; id < whole_.size(); ++id) {
      if (late_[id]) copy(linear, second_, id);
    }
    std::vector<ValueId> at_point;
    for (const ValueId v : outputs.first(values)) at_point.push_back(*first_(v));
    at_point.insert(at_point.end(), kept.begin(), kept.end());
    forward.set_outputs(std::move(at_point));
    std::vector<ValueId> along;
    for (const ValueId v : outputs.subspan(values)) along.push_back(*second_(v));
    linear.set_outputs(std::move(along));
    out.functions.push_back(make_function(std::move(forward)));
    out.functions.push_back(make_function(std::move(linear)));
    return out;
  }

 private:
  void copy(Graph& to, IdMap& map, NodeId id) const {
    Node n = whole_.node(id);
    for (ValueId& v : n.operands) v = *map(v);
    const std::size_t results = n.types.size();
    const NodeId now = to.append(std::move(n));
    for (std::uint32_t r = 0; r < results; ++r) map.set({id, r}, {now, r});
  }

  const Graph& whole_;
  std::vector<bool> late_;
  IdMap first_;
  IdMap second_;
};

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
    kept.emplace(fmt::format("residual.{}", i - values), found[i]);
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
    const Transformed t = vjp(g, differentiable_inputs(g, args.size()), GradOptions::training());
    std::vector<bool> late = dependents(
        t.graph, [&](const std::string& n) { return n.starts_with("d_output") && !g.find(n); });
    MadeFunctions split = Splitter(t.graph, std::move(late)).split(g.outputs().size());
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
        const Transformed t = jvp(g, differentiable_inputs(g, args.size()));
        std::vector<bool> late = dependents(
            t.graph, [&](const std::string& n) { return n.starts_with("tangent_") && !g.find(n); });
        MadeFunctions split = Splitter(t.graph, std::move(late)).split(g.outputs().size());
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
