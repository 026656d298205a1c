// The passes that make a graph smaller without changing what it computes, bit for bit.
#pragma once

#include "ricci/rewrite/pass.h"

namespace ricci {

/// Drops nodes no output depends on, and results nobody reads.
///   Before: any well-formed graph.
///   After: every node but inputs and params feeds an output, and only results that are read are
///   wanted. Inputs and params always stay: a program's signature does not depend on this pass.
[[nodiscard]] PassResult dead_code_elimination(const Graph& graph);

}  // namespace ricci
