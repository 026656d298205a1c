#include "transform/expand_active.h"

#include <algorithm>
#include <set>

#include "ricci/build/build.h"
#include "ricci/compiler/rule/expand.h"
#include "ricci/op/control.h"
#include "ricci/op/table.h"

#include "transform/dependence.h"
#include "transform/names.h"

namespace ricci {
namespace {

std::vector<Value> written_out(const Node& node, std::vector<Value> operands, Graph& graph) {
  if (!node.op.is<op::CustomFn>()) return expand_node(node, std::move(operands), graph);
  return inline_subgraph(*node.body("fwd"), operands, graph);
}

// Gives results that are operands, or each other, values of their own: a cotangent belongs to one
// value, and that of a result is not that of the operand it happens to be.
void keep_apart(std::vector<Value>& results, const std::vector<Value>& operands) {
  std::set<ValueId> taken;
  for (const Value& v : operands) taken.insert(v.id());
  for (Value& v : results) {
    if (!v.valid() || taken.insert(v.id()).second) continue;
    v = reshape(v, {.new_shape = v.dims()});
    taken.insert(v.id());
  }
}

// Has the node no reverse rule but that of its parts?
bool needs_expansion(const Node& node) {
  if (const auto* custom = node.op.as<op::CustomFn>()) {
    return node.body("vjp") == nullptr && !custom->transpose_jvp;
  }
  return descriptor(node.op.kind()).vjp == RuleSource::Expansion;
}

}  // namespace

std::vector<ValueId> seeded_outputs(const Graph& graph, const std::vector<bool>& seeded) {
  std::vector<ValueId> out;
  for (std::size_t i = 0; i < seeded.size(); ++i) {
    if (seeded[i]) out.push_back(graph.outputs()[i]);
  }
  return out;
}

PassResult expand_nodes(const Graph& graph, const std::function<bool(NodeId)>& chosen) {
  Rebuilder build(graph);
  bool changed = false;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (!chosen(id)) {
      build.copy(id);
      continue;
    }
    changed = true;
    const Node& node = graph.nodes()[id];
    const ProvenanceScope scope(build.to(), node.provenance ? *node.provenance : Provenance{});
    std::vector<Value> results = written_out(node, build.operands(node), build.to());
    keep_apart(results, build.operands(node));
    for (std::uint32_t r = 0; r < results.size(); ++r) {
      if (!node.wanted[r] || !results[r].valid()) continue;
      build.map({id, r}, results[r]);
      keep_name(node, r, results[r]);
    }
  }
  IdMap map = build.id_map();
  Graph out = build.finish();
  return {std::move(out), std::move(map), changed};
}

PassResult expand_for_vjp(const Graph& graph, std::vector<ValueId> wrt,
                          const std::vector<bool>& seeded) {
  PassResult all{graph, IdMap::identity(graph), false};
  while (true) {
    const Graph& now = all.graph;
    const Dependence depends(now, wrt);
    const std::vector<bool> leads = leading_to(now, seeded_outputs(now, seeded));
    // A value that is itself asked for depends on itself; its node need not be taken apart.
    const auto chosen = [&](NodeId id) {
      return leads[id] && depends.passes(id) && needs_expansion(now.nodes()[id]);
    };
    bool any = false;
    for (NodeId id = 0; id < now.size() && !any; ++id) any = chosen(id);
    if (!any) return all;
    PassResult next = expand_nodes(now, chosen);
    for (ValueId& v : wrt) v = next.map(v).value();
    all = {std::move(next.graph), all.map.then(next.map), true};
  }
}

}  // namespace ricci
