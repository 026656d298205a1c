#include "transform/leaves.h"

#include <fmt/format.h>

#include "ricci/build/build.h"
#include "ricci/transform/error.h"

#include "transform/names.h"

namespace ricci {
namespace {

const std::string* name_of(const Node& node) {
  if (const auto* in = node.op.as<op::Input>()) return &in->name;
  if (const auto* p = node.op.as<op::Param>()) return &p->name;
  return nullptr;
}

}  // namespace

std::string leaf_name(const Graph& graph, const ValueRef& ref) {
  const ValueId v = ref.in(graph);
  const Node& node = graph.node(v.node);
  if (const std::string* name = name_of(node)) return *name;
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

void require_tangent(const std::string& name, const Type& type) {
  if (is_differentiable(type.dtype)) return;
  throw AutodiffError(ErrorCode::NoGradient,
                      fmt::format("'{}' is {} and has no tangent", name, type.to_string()),
                      "only floating and complex values have one");
}

SharedLeaves::SharedLeaves(const Graph& like, std::string name)
    : graph_(std::move(name), like.registry()) {
  graph_.reserve_keys(like.next_key());
  for (const Node& node : like.nodes()) {
    const std::string* leaf = name_of(node);
    if (leaf == nullptr) continue;
    leaves_.emplace(*leaf, Value(&graph_, {graph_.append(node), 0}));
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
  for (NodeId id = 0; id < from.size(); ++id) {
    const std::string* name = name_of(from.nodes()[id]);
    if (name == nullptr) continue;
    if (const auto there = to.find(*name)) map.set({id, 0}, {*there, 0});
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
