// Writes out the ops that a transform can only treat in expanded form.
#pragma once

#include <functional>

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Replaces each node that `chosen` picks by its expansion; a custom function by its forward body.
[[nodiscard]] PassResult expand_nodes(const Graph& graph,
                                      const std::function<bool(NodeId)>& chosen);

/// Expands, until there is none left, the nodes without a reverse rule of their own through which a
/// gradient from a seeded output to one of `wrt` passes.
[[nodiscard]] PassResult expand_for_vjp(const Graph& graph, std::vector<ValueId> wrt,
                                        const std::vector<bool>& seeded);

/// The outputs a mask marks.
[[nodiscard]] std::vector<ValueId> seeded_outputs(const Graph& graph,
                                                  const std::vector<bool>& seeded);

}  // namespace ricci
