// A program whose inexact ops see and give numbers that are off by a unit in the last place or two:
// what another device's rounding may make of it.
//
// Some ops tell nothing from the least there is: a cast to bool, `ne`, `sign`. Where terms cancel,
// rounding leaves something or nothing, and factors near 1 make something of no nothing, nor
// nothing of something. What such an op asks about is therefore computed twice, and taken for
// nothing where the two differ by as much as it is: that is an error of its own size, which only
// terms that are larger than it give. What does not cancel stays what it is, however small.
#pragma once

#include "ricci/ir/graph.h"

#include "property/random.h"

namespace ricci::testing {

/// In bodies too. Composite ops are moved as a whole.
[[nodiscard]] Graph rounded_otherwise(const Graph& graph, Rng& rng);

}  // namespace ricci::testing
