// Inputs and params by name, and graphs that share them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ricci/ir/inline_into.h"
#include "ricci/transform/transformed.h"

namespace ricci {

/// The name of an input or param; UserError(name) when the reference is to something computed.
[[nodiscard]] std::string leaf_name(const Graph& graph, const ValueRef& ref);
[[nodiscard]] std::vector<std::string> leaf_names(const Graph& graph,
                                                  const std::vector<ValueRef>& refs);

/// UserError(no_gradient) for a leaf that cannot be moved a little.
void require_tangent(const std::string& name, const Graph& graph, ValueId leaf);

/// A new graph with the leaves of `like`, in order.
class SharedLeaves {
 public:
  explicit SharedLeaves(const Graph& like, std::string name);

  [[nodiscard]] Graph& graph() noexcept { return graph_; }
  /// A further input.
  Value add_input(const std::string& name, const Type& type);
  /// Copies a graph whose leaves are known here by name, or are given.
  [[nodiscard]] std::vector<Value> include(const Graph& source, const NamedValues& given = {});
  [[nodiscard]] Graph finish(const std::vector<Value>& outputs);

 private:
  Graph graph_;
  NamedValues leaves_;
};

/// The same graph with other outputs.
[[nodiscard]] Graph with_outputs(Graph graph, std::vector<ValueId> outputs);

/// Where leaves of one graph are in another, by name.
[[nodiscard]] IdMap map_leaves(const Graph& from, const Graph& to);

/// The unit matrix with its rows in the shape of `type`: [n, *dims], n the number of elements.
[[nodiscard]] Value unit_rows(Graph& graph, const Type& type);
[[nodiscard]] Dim element_count(const Type& type);

}  // namespace ricci
