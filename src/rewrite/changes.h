// Passes as other passes call them: a graph that has nothing to change is neither rebuilt nor
// copied, and most passes find most graphs so.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// What a pass made of a graph; nothing where it leaves the graph as it is.
using Change = std::optional<PassResult>;

// The passes of ricci/compiler/rewrite/cleanup.h and canonicalize.h.
[[nodiscard]] Change drop_dead_code(const Graph& graph);
[[nodiscard]] Change merge_common(const Graph& graph);
[[nodiscard]] Change fold_constants(const Graph& graph);
[[nodiscard]] Change apply_rules(const Graph& graph);
[[nodiscard]] Change move_invariants(const Graph& graph);
// The pass of ricci/compiler/rewrite/loops.h.
[[nodiscard]] Change join_loop_products(const Graph& graph);

/// A graph and the changes made to it, one after the other.
class Changes {
 public:
  /// The graph must outlive this.
  explicit Changes(const Graph& graph) : before_(graph) {}

  [[nodiscard]] const Graph& graph() const { return all_ ? all_->graph : before_; }
  /// Gives whether there was one.
  bool apply(Change change);
  [[nodiscard]] Change take() { return std::move(all_); }

 private:
  const Graph& before_;
  Change all_;
};

/// The bodies of a graph's nodes after a pass, made before it is known whether the graph changes.
class ChangedBodies {
 public:
  ChangedBodies(const Graph& graph, const std::function<Change(const Graph&)>& pass);

  [[nodiscard]] bool any() const noexcept { return !changed_.empty(); }
  [[nodiscard]] const std::vector<Body>& of(NodeId id, const Node& node) const;

 private:
  std::map<NodeId, std::vector<Body>> changed_;
};

/// What a rebuilder has built.
[[nodiscard]] PassResult finished(Rebuilder& rebuild);
[[nodiscard]] PassResult or_unchanged(const Graph& graph, Change change);

}  // namespace ricci
