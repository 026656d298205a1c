#include "rewrite/replace_nodes.h"

#include <fmt/format.h>

#include "ricci/op/leaf.h"
#include "ricci/support/checked.h"
#include "ricci/support/limits.h"
#include "ricci/support/stop.h"

namespace ricci {
namespace {

Provenance made_by(std::string_view pass, const Node& node) {
  Provenance from = node.provenance ? *node.provenance : Provenance{};
  if (from.origin.empty()) from.origin = pass;
  return from;
}

// A value that was there before keeps its own name; one that came with a body takes the node's.
void keep_name(const std::string& name, Value v, std::size_t first_new) {
  if (!name.empty() && v.id().node >= first_new) v.named(name);
}

}  // namespace

PassResult replace_nodes(const Graph& graph, std::string_view pass, const NodeRewrite& rewrite,
                         const std::function<PassResult(const Graph&)>& in_bodies) {
  Rebuilder rebuild(graph);
  bool changed = false;
  for (NodeId id = 0; id < graph.size(); ++id) {
    Node node = graph.nodes()[id];
    if (!node.bodies.empty()) node.bodies = map_bodies(node, in_bodies, changed);
    const std::size_t first_new = rebuild.to().size();
    NewResults results;
    {
      const ProvenanceScope scope(rebuild.to(), made_by(pass, node));
      results = rewrite({id, node, rebuild, rebuild.operands(node)});
    }
    if (!results) {
      rebuild.copy(id, std::move(node.bodies));
      continue;
    }
    changed = true;
    check_internal(results->size() == node.types.size(), "a pass gives one value per result");
    for (std::uint32_t r = 0; r < results->size(); ++r) {
      const Value v = (*results)[r];
      if (!node.wanted[r] || !v.valid()) continue;
      check_internal(v.type() == node.types[r], "a pass keeps the types of results");
      rebuild.map({id, r}, v);
      keep_name(node.names[r], v, first_new);
    }
  }
  if (!changed) return unchanged(graph);
  Graph out = rebuild.finish();
  return {std::move(out), rebuild.id_map(), true};
}

PassResult replace_nodes(const Graph& graph, std::string_view pass, const NodeRewrite& rewrite) {
  return replace_nodes(graph, pass, rewrite,
                       [&](const Graph& body) { return replace_nodes(body, pass, rewrite); });
}

void check_written_out(const NodeVisit& visit, std::int64_t times,
                       std::initializer_list<const Graph*> bodies) {
  const std::int64_t most = Limits{}.nodes;
  std::int64_t trip = 1;
  for (const Graph* body : bodies) trip += static_cast<std::int64_t>(count_nodes(*body));
  const std::int64_t made =
      saturating_add(static_cast<std::int64_t>(visit.graph().size()), saturating_mul(times, trip));
  if (made <= most) return;
  const Node& node = visit.node;
  throw UserError(
      {.code = ErrorCode::Refused,
       .detail = "unroll",
       .message = fmt::format("a '{}' of {} trips would be more than {} nodes written out",
                              node.op.mnemonic(), times, most),
       .where = node.provenance ? node.provenance->where : SourcePosition{},
       .notes = {},
       .help = "give it fewer trips, or leave it a loop: it can be differentiated, batched and "
               "compiled as it is"});
}

PassResult to_fixpoint(const Graph& graph,
                       const std::vector<std::function<PassResult(const Graph&)>>& passes) {
  PassResult all = unchanged(graph);
  for (bool again = true; again;) {
    again = false;
    for (const auto& pass : passes) {
      throw_if_stopped();
      PassResult next = pass(all.graph);
      if (!next.changed) continue;
      again = true;
      all = {std::move(next.graph), all.map.then(next.map), true};
    }
  }
  return all;
}

}  // namespace ricci
