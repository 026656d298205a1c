// Where one complex number is the whole derivative: on the way from an input to an output every op
// is holomorphic.
#pragma once

#include <string>

#include "ricci/ir/graph.h"

namespace ricci {

/// AutodiffError(refused) when a derivative on its way from the leaf `by` to the output `of`, both
/// complex, passes an op that is not holomorphic; names the op.
void require_holomorphic(const Graph& graph, ValueId of, const std::string& by);

}  // namespace ricci
