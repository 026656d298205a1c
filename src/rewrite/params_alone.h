// Which values are fixed once the params are.
#pragma once

#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

/// For every node, whether it depends on params and constants alone.
[[nodiscard]] std::vector<bool> params_alone(const Graph& graph);

}  // namespace ricci
