// Writes out the ops that a transform can only treat in expanded form.
#pragma once

#include <functional>

#include "ricci/rewrite/pass.h"

namespace ricci {

/// Replaces each node that `chosen` picks by its expansion; a custom function by its forward body.
[[nodiscard]] PassResult expand_nodes(const Graph& graph,
                                      const std::function<bool(NodeId)>& chosen);

/// Expands, until there is none left, the nodes without a reverse rule of their own through which a
/// gradient to one of `wrt` passes.
[[nodiscard]] PassResult expand_for_vjp(const Graph& graph, std::vector<ValueId> wrt);

}  // namespace ricci
