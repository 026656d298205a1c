// Preparation for differentiation by rules for primitives alone.
#pragma once

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Takes apart regions, reductions over several axes, fused ops, general products, branches, loops
/// with a condition and custom functions without rules, makes scans keep their carries, and joins
/// the halves of images of splats; again and again, bodies included, until nothing is left to do.
/// The transforms of this library have rules for most of these ops and do not need it; tools that
/// have none do.
///   Before: every `while` has max_iterations, and sequences have known lengths.
///   After: the postconditions of all the passes it runs; every output has its value.
[[nodiscard]] PassResult prepare_for_autodiff(const Graph& graph);

}  // namespace ricci
