#include "transform/leaves.h"

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/transform/error.h"

#include "transform/codes.h"
#include "transform/names.h"

namespace ricci {

std::string leaf_name(const Graph& graph, const ValueRef& ref) {
  const ValueId v = ref.in(graph);
  const Node& node = graph.node(v.node);
  if (const std::string* name = node.leaf_name()) return *name;
  Diagnostic d{ErrorCode::Name,
               {},
               fmt::format("an input or a param is meant, but '{}' is computed by '{}'",
                           display_name(graph, v), node.op.mnemonic()),
               {},
               {},
               {}};
  if (node.provenance) d.where = node.provenance->where;
  throw UserError(std::move(d));
}

std::vector<std::string> leaf_names(const Graph& graph, const std::vector<ValueRef>& refs) {
  std::vector<std::string> out;
  for (const ValueRef& r : refs) out.push_back(leaf_name(graph, r));
  return out;
}

void require_tangent(const std::string& name, const Graph& graph, ValueId leaf) {
  if (has_derivative(graph, leaf)) return;
  throw AutodiffError(
      ErrorCode::NoGradient,
      fmt::format("'{}' is {} and has no tangent", name, graph.type(leaf).to_string()),
      "only floating and complex values have one, and codes of such");
}

SharedLeaves::SharedLeaves(const Graph& like, std::string name)
    : graph_(std::move(name), like.registry()) {
  graph_.reserve_keys(like.next_key());
  for (const NodeId id : like.leaves()) {
    const Node& leaf = like.node(id);
    leaves_.emplace(*leaf.leaf_name(), graph_.value({graph_.append(leaf), 0}));
  }
}

Value SharedLeaves::add_input(const std::string& name, const Type& type) {
  const Value v = graph_.input(graph_.unique_name(name), type);
  leaves_.emplace(name, v);
  return v;
}

std::vector<Value> SharedLeaves::include(const Graph& source, const NamedValues& given) {
  NamedValues values = leaves_;
  for (const auto& [name, value] : given) values.insert_or_assign(name, value);
  return inline_into(graph_, source, values, values);
}

Graph SharedLeaves::finish(const std::vector<Value>& outputs) {
  graph_.set_outputs(outputs);
  return std::move(graph_);
}

Graph with_outputs(Graph graph, std::vector<ValueId> outputs) {
  graph.set_outputs(std::move(outputs));
  return graph;
}

IdMap map_leaves(const Graph& from, const Graph& to) {
  IdMap map(from);
  for (const NodeId id : from.leaves()) {
    if (const auto there = to.find(*from.node(id).leaf_name())) map.set({id, 0}, {*there, 0});
  }
  return map;
}

Dim element_count(const Type& type) {
  Dim n = 1;
  for (const Dim& d : type.dims) n = n * d;
  return n;
}

Value unit_rows(Graph& graph, const Type& type) {
  const Dim n = element_count(type);
  const Value row = iota(graph, {.shape = {n, n}, .axis = 0});
  const Value column = iota(graph, {.shape = {n, n}, .axis = 1});
  Dims dims{n};
  dims.insert(dims.end(), type.dims.begin(), type.dims.end());
  return reshape_to(cast_to(eq(row, column), type.dtype), std::move(dims));
}

}  // namespace ricci
