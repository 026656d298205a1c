// Taylor mode: derivatives of any order along a curve, in one sweep.
//
//   Transformed j = jet(graph, {"x"}, 4);  // takes d1_x … d4_x too
//   auto [y, d1, d2, d3, d4] = …           // its outputs: y and its derivatives
//
// The graph grows with the square of the order (with its cube where a formula never leads back to
// itself, as with powers and linear solves), not by a factor per order as nested derivatives do.
#pragma once

#include <string_view>
#include <vector>

#include "ricci/transform/transformed.h"

namespace ricci {

struct JetOptions {
  /// The curve is a straight line: only first derivatives are inputs, the others are zero.
  bool line = false;
};

/// Each value of `wrt` (inputs or params) moves along a curve x(s) with x(0) the value itself; new
/// inputs `d<k>_<name>`, of its type, are the derivatives d^k x/ds^k at s = 0 for k = 1 … `order`.
/// Derivatives, not Taylor coefficients: x(s) = x + d1·s + d2·s²/2 + … + dn·sⁿ/n!.
///
/// Outputs are `[outputs…, first derivatives…, …, derivatives of order `order`…]` by s at s = 0,
/// each of its output's type; zeros where nothing moves an output, or it has no derivative. With
/// d1 = v and the others zero, derivative k is the k-th derivative along v: D^k f(x)[v, …, v].
///
/// Rules are those of `jvp`, kinks included, and what it refuses is refused here. UserError(attr)
/// for a negative order; order 0 gives the outputs alone.
[[nodiscard]] Transformed jet(const Graph& graph, const std::vector<ValueRef>& wrt, int order,
                              const JetOptions& options = {});

}  // namespace ricci
