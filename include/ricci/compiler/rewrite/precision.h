// Mixed precision: a graph in f32 computed in f16 or bf16 where that loses little. A policy says in
// which dtype each class of ops computes; casts are put where dtypes meet, once for each value.
//
//   Graph mixed = auto_mixed_precision(graph, PrecisionPolicy::auto_mixed_bf16()).graph;
//
// Only f32 values change their dtype. Inputs, params, constants, random numbers, the signatures of
// bodies and the outputs keep theirs, so params stay the f32 masters an optimiser updates and
// whoever feeds the graph need not know. So does the arithmetic by which an output is the next
// value of an f32 param: the moments of an optimiser would never decay in bf16. Sums inside ops are
// in f32 whatever dtype their operands have.
#pragma once

#include "ricci/compiler/rewrite/pass.h"
#include "ricci/op/precision_policy.h"

namespace ricci {

/// The graph under a policy; bodies too, with their signatures kept. An op that does not take the
/// dtype stays in f32. Doing it twice is doing it once. UserError(attr) for a policy that names
/// another dtype than those above.
[[nodiscard]] PassResult auto_mixed_precision(const Graph& graph, const PrecisionPolicy& policy);

}  // namespace ricci
