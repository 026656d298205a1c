// Preparation of a graph for differentiation, as a transform.
#pragma once

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// The pass `prepare_for_autodiff` with errors of differentiation: the graph in primitives, scans
/// and functions with rules, and where every value went. `grad`, `jvp` and `vmap` do not need it.
/// AutodiffError(unbounded_loop) for a `while` without a bound.
[[nodiscard]] PassResult prepare_graph_for_ad(const Graph& graph);

}  // namespace ricci
