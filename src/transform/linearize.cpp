#include "ricci/transform/jvp.h"

#include "transform/split.h"

namespace ricci {

Linearized linearize(const Graph& graph, const std::vector<ValueRef>& tangent_for) {
  SplitHalves halves = split_in_two(graph, jvp(graph, tangent_for),
                                    {.first_suffix = "_primal", .second_suffix = "_tangent"});
  return {std::move(halves.first), std::move(halves.second), halves.residuals.size()};
}

}  // namespace ricci
