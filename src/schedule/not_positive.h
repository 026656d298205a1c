// What the graph says about the sign of a value.
#pragma once

#include "ricci/ir/graph.h"

namespace ricci::schedule {

/// Is a value at most 0, or NaN, whatever the inputs are? False when in doubt.
[[nodiscard]] bool never_positive(const Graph& graph, ValueId value);

}  // namespace ricci::schedule
