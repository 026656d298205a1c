// Building one graph from another: what every pass and transform does. A `Rebuilder` copies nodes
// across and remembers where each old value went; the result is the id map passes hand back.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

/// Where the values of an old graph are in a new one; nothing for values that are gone.
class IdMap {
 public:
  IdMap() = default;
  explicit IdMap(const Graph& from);
  [[nodiscard]] std::optional<ValueId> operator()(ValueId old) const;
  void set(ValueId old, ValueId now);
  /// Forgets where an old value went: it is gone.
  void drop(ValueId old);
  /// First this map, then `next`.
  [[nodiscard]] IdMap then(const IdMap& next) const;
  /// Every value stays where it is.
  [[nodiscard]] static IdMap identity(const Graph& graph);

 private:
  [[nodiscard]] std::size_t place(ValueId old) const;

  std::vector<std::size_t> first_;  // of each node, where its results begin; and the end of all
  std::vector<ValueId> map_;        // of each result; a ValueId without a node where it is gone
};

class Rebuilder {
 public:
  /// Starts an empty graph with the name and registry of `from`.
  explicit Rebuilder(const Graph& from);

  [[nodiscard]] const Graph& from() const noexcept { return from_; }
  [[nodiscard]] Graph& to() noexcept { return to_; }
  [[nodiscard]] bool has(ValueId old) const { return map_(old).has_value(); }
  /// The new place of an old value; InternalError when it has none.
  [[nodiscard]] ValueId operator()(ValueId old) const;
  [[nodiscard]] Value value(ValueId old) { return to_.value((*this)(old)); }
  [[nodiscard]] std::vector<Value> operands(const Node& node);
  void map(ValueId old, ValueId now) { map_.set(old, now); }
  void map(ValueId old, Value now) { map_.set(old, now.id()); }
  void drop(ValueId old) { map_.drop(old); }
  /// Copies a node with its operands mapped; types, names, bodies and provenance are kept.
  NodeId copy(NodeId old);
  /// The same with changed bodies.
  NodeId copy(NodeId old, std::vector<Body> bodies);
  /// The same with other operands, which are old values too.
  NodeId copy(NodeId old, std::vector<Body> bodies, std::vector<ValueId> operands);
  /// Maps the outputs and hands the graph over.
  [[nodiscard]] Graph finish();
  [[nodiscard]] const IdMap& id_map() const noexcept { return map_; }

 private:
  const Graph& from_;
  Graph to_;
  IdMap map_;
};

/// Copies a body into `target`: its inputs, in order, become `values`; gives its outputs.
[[nodiscard]] std::vector<Value> inline_subgraph(const Graph& body, std::span<const Value> values,
                                                 Graph& target);

}  // namespace ricci
