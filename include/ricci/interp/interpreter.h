// The reference interpreter: runs a graph node by node with the ops' reference kernels. It is the
// definition of what programs mean and the oracle for everything faster.
//
//   std::vector<Tensor> out = interpret(graph, {{"x", x}, {"w", w}});
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

/// Values for inputs and params, by name.
using Feeds = std::map<std::string, Tensor, std::less<>>;

struct InterpretOptions {
  std::uint64_t seed = 0;  ///< the run's global seed for random ops
  /// Called with every node's results as they are made; for traces and non-finite searches.
  std::function<void(const Graph&, NodeId, std::span<const Tensor>)> observer = {};
};

/// Runs a graph; gives its outputs in order. Symbols are bound from the shapes of the feeds.
/// UserError when a feed is missing or has the wrong type, or when a kernel reports a fault.
[[nodiscard]] std::vector<Tensor> interpret(const Graph& graph, const Feeds& feeds,
                                            const InterpretOptions& options = {});

/// What the symbols of a graph stand for, given its feeds; UserError(shape) when feeds disagree.
[[nodiscard]] SymbolBindings bindings_from_feeds(const Graph& graph, const Feeds& feeds);

}  // namespace ricci
