// What most passes are: a walk that puts something else in the place of some nodes.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "rewrite/changes.h"

namespace ricci {

/// A node of the old graph, with its bodies already rewritten, and the graph under construction.
struct NodeVisit {
  NodeId id;
  const Node& node;
  Rebuilder& rebuild;
  std::vector<Value> operands;  ///< in the new graph

  [[nodiscard]] Graph& graph() const { return rebuild.to(); }
};

/// One value per result, invalid for results that are not wanted; nothing keeps the node.
using NewResults = std::optional<std::vector<Value>>;
using NodeRewrite = std::function<NewResults(const NodeVisit&)>;

/// Walks a graph in order. Bodies are rewritten by `in_bodies` before their node is visited. Nodes
/// that are built remember where the old one came from and the name of the pass.
[[nodiscard]] PassResult replace_nodes(const Graph& graph, std::string_view pass,
                                       const NodeRewrite& rewrite,
                                       const std::function<PassResult(const Graph&)>& in_bodies);
/// The same, with the same rewrite in bodies.
[[nodiscard]] PassResult replace_nodes(const Graph& graph, std::string_view pass,
                                       const NodeRewrite& rewrite);

/// May a rewrite have something else for a node? Asked before anything is built.
using NodeTest = std::function<bool(const Graph&, const Node&)>;
/// The same for a rewrite of few nodes, bodies included: a graph without any is not rebuilt.
[[nodiscard]] Change replace_where(const Graph& graph, std::string_view pass,
                                   const NodeTest& concerns, const NodeRewrite& rewrite);

/// Runs passes one after the other, again and again, until none changes anything.
[[nodiscard]] PassResult to_fixpoint(
    const Graph& graph, const std::vector<std::function<PassResult(const Graph&)>>& passes);

/// UserError(refused) when `times` copies of `bodies` would make a graph larger than text may be.
void check_written_out(const NodeVisit& visit, std::int64_t times,
                       std::initializer_list<const Graph*> bodies);

}  // namespace ricci
