// The verifier: is this a well-formed graph? Runs after every pass in tests and debug builds, and
// on every graph that enters a compiler. It collects all faults, in bodies too, before it reports.
#pragma once

#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

/// Every fault found; empty when the graph is well formed.
[[nodiscard]] std::vector<Diagnostic> find_faults(const Graph& graph);
/// Throws one UserError that lists every fault.
void verify(const Graph& graph);

}  // namespace ricci
