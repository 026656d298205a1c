#include "rewrite/replace_nodes.h"

#include <algorithm>
#include <optional>

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

// Puts what a pass made of a node in its place; false where the pass keeps it.
bool replaced(NodeId id, const Node& node, std::string_view pass, const NodeRewrite& rewrite,
              Rebuilder& rebuild) {
  const std::size_t first_new = rebuild.to().size();
  NewResults results;
  {
    const ProvenanceScope scope(rebuild.to(), made_by(pass, node));
    results = rewrite({id, node, rebuild, rebuild.operands(node)});
  }
  if (!results) return false;
  check_internal(results->size() == node.types.size(), "a pass gives one value per result");
  for (std::uint32_t r = 0; r < results->size(); ++r) {
    const Value v = (*results)[r];
    if (!node.wanted[r] || !v.valid()) continue;
    check_internal(v.type() == node.types[r], "a pass keeps the types of results");
    rebuild.map({id, r}, v);
    keep_name(node.names[r], v, first_new);
  }
  return true;
}

// The node with other bodies, where they are others.
class WithBodies {
 public:
  WithBodies(const Node& node, const std::vector<Body>& bodies) : node_(node) {
    if (&bodies == &node.bodies) return;
    own_ = node;
    own_->bodies = bodies;
  }
  [[nodiscard]] const Node& node() const { return own_ ? *own_ : node_; }

 private:
  const Node& node_;
  std::optional<Node> own_;
};

}  // namespace

PassResult replace_nodes(const Graph& graph, std::string_view pass, const NodeRewrite& rewrite,
                         const std::function<PassResult(const Graph&)>& in_bodies) {
  const ChangedBodies bodies(graph, [&](const Graph& body) -> Change {
    PassResult inner = in_bodies(body);
    if (!inner.changed) return std::nullopt;
    return inner;
  });
  Rebuilder rebuild(graph);
  bool changed = bodies.any();
  for (NodeId id = 0; id < graph.size(); ++id) {
    const WithBodies now(graph.nodes()[id], bodies.of(id, graph.nodes()[id]));
    if (replaced(id, now.node(), pass, rewrite, rebuild)) {
      changed = true;
    } else {
      rebuild.copy(id, now.node().bodies);
    }
  }
  return changed ? finished(rebuild) : unchanged(graph);
}

Change replace_where(const Graph& graph, std::string_view pass, const NodeTest& concerns,
                     const NodeRewrite& rewrite) {
  const ChangedBodies bodies(
      graph, [&](const Graph& body) { return replace_where(body, pass, concerns, rewrite); });
  const auto is_concerned = [&](const Node& node) { return concerns(graph, node); };
  if (!bodies.any() && std::ranges::none_of(graph.nodes(), is_concerned)) return std::nullopt;
  Rebuilder rebuild(graph);
  bool changed = bodies.any();
  for (NodeId id = 0; id < graph.size(); ++id) {
    const WithBodies now(graph.nodes()[id], bodies.of(id, graph.nodes()[id]));
    if (is_concerned(now.node()) && replaced(id, now.node(), pass, rewrite, rebuild)) {
      changed = true;
    } else {
      rebuild.copy(id, now.node().bodies);
    }
  }
  if (!changed) return std::nullopt;
  return finished(rebuild);
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
