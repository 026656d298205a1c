// Between which operands and results of a node a derivative passes, through its bodies and from
// step to step of its loops. Questions are about sets: a table of all pairs of a loop's operands
// and results would grow with the square of their number.
#pragma once

#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::rule {

/// The results that a derivative reaches from one of the marked operands.
[[nodiscard]] std::vector<bool> reached_results(const Graph& graph, const Node& node,
                                                const std::vector<bool>& operands);

/// The operands from which a derivative reaches one of the marked results.
[[nodiscard]] std::vector<bool> leading_operands(const Graph& graph, const Node& node,
                                                 const std::vector<bool>& results);

}  // namespace ricci::rule
