// Estimates of the diagonal of a loss's Hessian inside a training step (Hutchinson).
#pragma once

#include <string>
#include <vector>

#include "ricci/build/build.h"
#include "ricci/transform/transformed.h"

namespace ricci {

/// For each of the named params s · (H s) with random signs s, of its type, where `flag` is not 0;
/// otherwise zeros, and nothing is computed. `products` are the Hessian-vector products by these
/// params (see hvp), whose other inputs and params `graph` has too. Signs are drawn anew for every
/// `count`, an integer.
[[nodiscard]] std::vector<Value> hessian_diagonals(Graph& graph, const Transformed& products,
                                                   const std::vector<std::string>& params,
                                                   Value flag, Value count);

}  // namespace ricci
