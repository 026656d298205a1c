// What pattern fusions are: places where several nodes become one. A place is found on the graph as
// it is; what is built there reads values of the graph under construction.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ricci/op/ops.h"

#include "rewrite/changes.h"

namespace ricci {

/// Values of the old graph, and what gives them in the new one. It is built where node `at` stood,
/// from values before it and from leaves.
struct Fusion {
  NodeId at;
  std::vector<ValueId> gives;
  std::function<std::vector<Value>(Rebuilder&)> build;
};

/// All places of one pattern in a graph. No two may give one value.
using FindFusions = std::function<std::vector<Fusion>(const Graph&)>;

/// A graph with its fusions made, bodies included, and without dead code: doing it again changes
/// nothing. Leaves come first, in their order, so that a param that is declared late can be read
/// early.
[[nodiscard]] PassResult make_fusions(const Graph& graph, std::string_view pass,
                                      const FindFusions& find);

/// What patterns ask about a graph.
class Uses {
 public:
  explicit Uses(const Graph& graph) : graph_(graph), counts_(graph.use_counts()) {}

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Node& node(ValueId v) const { return graph_.node(v.node); }
  [[nodiscard]] const Type& type(ValueId v) const { return graph_.type(v); }
  /// Read once, outputs included, of a node whose other results nobody reads.
  [[nodiscard]] bool once(ValueId v) const { return counts_[v.node] == 1; }
  template <class T>
  [[nodiscard]] const T* as(ValueId v) const {
    return graph_.node(v.node).op.as<T>();
  }

 private:
  const Graph& graph_;
  std::vector<std::size_t> counts_;
};

[[nodiscard]] bool is_binary_node(const Node& node, BinaryKind kind);
/// A sum of two values of its own type, so that nothing is broadcast or promoted.
[[nodiscard]] bool is_plain_sum(const Uses& uses, const Node& node);
/// Is the axis the last one?
[[nodiscard]] bool is_last_axis(const Axis& axis, const Type& type);

}  // namespace ricci
