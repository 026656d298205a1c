#include "runtime/packed_params.h"

#include <algorithm>
#include <set>

#include "ricci/compiler/rewrite/fuse.h"
#include "ricci/ir/rebuild.h"
#include "ricci/op/ops.h"

namespace ricci::runtime {
namespace {

// The params that a value is made of by moving elements; nothing where there is more to it.
std::optional<std::set<NodeId>> params_behind(const Graph& graph, NodeId id) {
  std::set<NodeId> params;
  std::set<NodeId> seen;
  std::vector<NodeId> open{id};
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    if (!seen.insert(at).second) continue;
    const Node& node = graph.node(at);
    if (node.op.is<op::Param>()) {
      params.insert(at);
    } else if (!node.op.has(Trait::DataMovement) || node.op.has(Trait::Faults) ||
               node.operands.empty() || !node.types[0].is_static()) {
      return std::nullopt;
    }
    for (const ValueId v : node.operands) open.push_back(v.node);
  }
  return params;
}

std::int64_t bytes_of(const Type& type) { return type.numel().value_or(0) * size_of(type.dtype); }

// Is it joined of params, and no larger than they are?
bool is_worth_packing(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.op.is<op::Concat>()) return false;
  const auto params = params_behind(graph, id);
  if (!params || params->empty()) return false;
  std::int64_t from = 0;
  for (const NodeId p : *params) from += bytes_of(graph.node(p).types[0]);
  return bytes_of(node.types[0]) <= from;
}

// Values to pack that something else than another one reads.
std::vector<NodeId> packed_values(const Graph& graph) {
  std::vector<bool> worth(graph.size());
  for (NodeId id = 0; id < graph.size(); ++id) worth[id] = is_worth_packing(graph, id);
  std::vector<bool> read(graph.size(), false);
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (const ValueId v : graph.node(id).operands) read[v.node] = read[v.node] || !worth[id];
  }
  for (const ValueId v : graph.outputs()) worth[v.node] = false;  // they are copied anyway
  std::vector<NodeId> out;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (worth[id] && read[id]) out.push_back(id);
  }
  return out;
}

// The part of a graph that makes one value of params.
PackedParam maker_of(const Graph& graph, NodeId value, std::string name) {
  std::vector<bool> needed(graph.size(), false);
  needed[value] = true;
  for (NodeId id = value + 1; id-- > 0;) {
    if (!needed[id]) continue;
    for (const ValueId v : graph.node(id).operands) needed[v.node] = true;
  }
  Rebuilder rebuild(graph);
  PackedParam out{std::move(name), {}, Graph("pack")};
  for (NodeId id = 0; id <= value; ++id) {
    if (!needed[id]) continue;
    rebuild.copy(id);
    if (graph.node(id).op.is<op::Param>()) out.sources.push_back(*graph.node(id).leaf_name());
  }
  const ValueId made = rebuild({value, 0});
  out.maker = std::move(rebuild.to());
  out.maker.set_outputs({made});
  return out;
}

}  // namespace

std::optional<Packing> packing_of(const Graph& graph) {
  const Graph joined = fuse_shared_input_matmul(graph).graph;
  const std::vector<NodeId> values = packed_values(joined);
  if (values.empty()) return std::nullopt;
  Packing out{Graph(graph.name()), {}};
  Rebuilder rebuild(joined);
  for (const NodeId id : joined.leaves()) rebuild.copy(id);
  for (const NodeId id : values) {
    std::string name = rebuild.to().unique_name("packed_params");
    rebuild.map({id, 0}, rebuild.to().param(name, joined.node(id).types[0]));
    out.params.push_back(maker_of(joined, id, std::move(name)));
  }
  for (NodeId id = 0; id < joined.size(); ++id) {
    if (!rebuild.has({id, 0})) rebuild.copy(id);
  }
  out.graph = rebuild.finish();
  return out;
}

}  // namespace ricci::runtime
