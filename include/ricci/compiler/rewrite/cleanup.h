// The passes that make a graph smaller or cheaper without changing what it computes, bit for bit.
#pragma once

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Drops nodes no output depends on, and results nobody reads.
///   Before: any well-formed graph.
///   After: every node but inputs and params feeds an output, and only results that are read are
///   wanted. Inputs and params always stay: a program's signature does not depend on this pass.
[[nodiscard]] PassResult dead_code_elimination(const Graph& graph);

/// Computes once what is computed twice: same op, attributes, operands and bodies. Where two nodes
/// want different results, the one that stays wants both's. Random ops are never merged.
///   Before: any well-formed graph.
///   After: no two nodes outside of bodies compute the same thing, and likewise inside each body.
[[nodiscard]] PassResult common_subexpression_elimination(const Graph& graph);

struct FoldOptions {
  std::int64_t max_bytes = std::int64_t{1} << 20;  ///< no constant larger than this is made
};
/// Evaluates nodes whose operands are all constants, with the reference kernels in the node's own
/// dtype. Folds only what is exactly rounded or moves elements, so that the constant is what every
/// backend would have computed. A fault (division by zero) is left for the run to report.
///   Before: any well-formed graph.
///   After: no such node within the size budget is left; its operands may be dead.
[[nodiscard]] PassResult constant_folding(const Graph& graph, const FoldOptions& options = {});

/// Takes away `expand`s of single elements in front of element-wise ops that broadcast anyway.
///   Before: any well-formed graph.
///   After: an element-wise node reads an expanded single element only where that gives its result
///   its shape; the expands may be dead.
[[nodiscard]] PassResult peel_scalar_expands(const Graph& graph);

/// Computes before a scan what every step of it would compute alike: values of the body that depend
/// on bcasts alone become bcasts themselves. Views (but for large matrices that products read
/// transposed), constants, broadcasts, random numbers and ops registered at run time stay where
/// they are, and so does all in a loop that may not run.
///   Before: any well-formed graph.
///   After: no step of a scan of at least two steps computes anything else that is the same for
///   all.
[[nodiscard]] PassResult hoist_invariants(const Graph& graph);

}  // namespace ricci
