// Forward mode: directional derivatives of every output.
//
//   Transformed j = jvp(graph, {"x"});     // new input "tangent_x"; outputs: primals…, tangents…
#pragma once

#include <vector>

#include "ricci/transform/transformed.h"

namespace ricci {

/// Outputs `[primals…, tangents…]`, one tangent per output; a new input `tangent_<name>` per listed
/// input or param, in the order of the list. A tangent that is zero is a constant of zeros. Outputs
/// of integer dtypes have zero tangents of their own type.
[[nodiscard]] Transformed jvp(const Graph& graph, const std::vector<ValueRef>& tangent_for);

/// A function at a point, split in two: what depends on the point, done once, and what depends on
/// the direction, which is linear. Control flow computes values and tangents together, so a loop
/// with a tangent is in the second half and computes its values again there.
struct Linearized {
  Transformed primal;  ///< outputs: the graph's outputs, then the residuals
  /// Inputs `residual_<i>`, then `tangent_<name>`; outputs: one tangent per output of the graph.
  Graph tangent;
  std::size_t residuals = 0;
};
[[nodiscard]] Linearized linearize(const Graph& graph, const std::vector<ValueRef>& tangent_for);

}  // namespace ricci
