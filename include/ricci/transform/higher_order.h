// Derivatives of derivatives, and whole Jacobians: compositions of reverse mode, forward mode,
// Taylor mode and vmap.
#pragma once

#include <string_view>
#include <vector>

#include "ricci/transform/grad.h"
#include "ricci/transform/transformed.h"

namespace ricci {

struct HvpOptions {
  bool external_seed = false;  ///< keep the input `d_output` instead of fixing it to ones
  GradOptions grad = {};
};
/// Hessian-vector products, forward over reverse. A new input `tangent_<name>` per value of `wrt`
/// (inputs or params) holds the vector; outputs `[loss, aux…, gradients…, t_loss, t_aux…, Hv…]`.
[[nodiscard]] Transformed hvp(const Graph& forward, const std::vector<ValueRef>& wrt,
                              const HvpOptions& options = {});

/// The `order`-th derivative of a single-element output by a single-element input or param; the
/// only output, of the type of `wrt`. Order 0 is the graph itself; order 1 takes a `wrt` of any
/// shape. Where nothing depends on `wrt` any more the result is zero.
///
/// Orders 1 and 2 nest reverse mode. From order 3 on it is one sweep of Taylor mode (see
/// ricci/transform/jet.h), so the graph grows with a power of the order. Graphs for which forward
/// and reverse mode may differ are nested to any order and about double with each: those with
/// complex values, registered ops, or functions with a reverse rule of their own.
[[nodiscard]] Transformed nth_order_grad(const Graph& forward, std::string_view wrt, int order);

/// The mixed directional derivative along `levels` directions, new inputs `dir_1`, `dir_2`, …, each
/// of the shape of `wrt`; the only output, of the type of the graph's. For wrt of any shape.
///
/// Up to 4 directions nest forward mode. More are one sweep of Taylor mode, batched over the
/// 2^(levels-1) sums ±dir_1 ± … + dir_n, of which the derivative is a signed mean: the graph grows
/// with a power of `levels`, the work still doubles. Nesting has only the rounding of its own
/// operations. The mean cancels: relative to the largest derivative of that order along directions
/// of the same size it loses a factor of about nⁿ/n! to rounding, 30 at n = 5 and 20000 at n = 12.
/// A complex `wrt` and graphs with registered ops are nested to any level.
[[nodiscard]] Transformed directional_nth_grad(const Graph& forward, std::string_view wrt,
                                               int levels);

/// Jacobians, forward mode: one pass per element of `wrt`, batched. Outputs: for every output of
/// the graph, for every value of `wrt`, a matrix `[output elements, wrt elements]`.
///
/// Complex values (docs/COMPLEX.md): of a complex output by a complex z the derivative ∂y/∂z, for
/// which every op on the way must be holomorphic (AutodiffError(refused) otherwise); of a real
/// output by z its gradient ∂y/∂z̄; of a complex output by a real x ∂y/∂x.
[[nodiscard]] Transformed jacfwd(const Graph& graph, const std::vector<ValueRef>& wrt);
/// The same by reverse mode: one pass per element of the output, batched.
[[nodiscard]] Transformed jacrev(const Graph& graph, const std::vector<ValueRef>& wrt);

/// Second derivatives of a single-element first output: for every pair of values of `wrt`, row by
/// row, a matrix `[elements of the first, elements of the second]`. By complex values that of a
/// real output is ∂²L/∂z̄∂z, which is Hermitian, and that of a holomorphic one ∂²f/∂z²; ∂²L/∂z̄∂z̄
/// has its part in what hvp gives along a direction.
[[nodiscard]] Transformed hessian(const Graph& graph, const std::vector<ValueRef>& wrt);

/// Gauss-Newton products. The graph computes a loss of some value `at` (a network's predictions),
/// which depends on `wrt`; with J = ∂at/∂wrt and H the Hessian of the loss by `at`, the outputs are
/// `[loss, (Jᵀ H J v)…]`, with v in new inputs `tangent_<name>`. What the loss owes to `wrt` on
/// other ways than through `at` has no part in it. UserError(no_gradient) when the loss does not
/// depend on `at`.
[[nodiscard]] Transformed gauss_newton_product(const Graph& graph, const std::vector<ValueRef>& wrt,
                                               const ValueRef& at);

}  // namespace ricci
