// What the gradient of attention begins with, Σ P dP of every query, from what the forward pass
// gave for it: the sum over a head's numbers of that times dy.
#pragma once

#include "rewrite/changes.h"

namespace ricci::schedule {

/// attention_backward of a forward pass that is in the graph, with that as an operand of its own.
[[nodiscard]] Change attention_means(const Graph& graph);

}  // namespace ricci::schedule
