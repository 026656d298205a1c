// Reverse mode: gradients of a graph's first output.
//
//   Transformed g = grad(graph, {"w", "b"});            // outputs: dw, db
//   Transformed v = value_and_grad(graph, {"w", "b"});  // outputs: loss, aux…, dw, db
//   Transformed s = grad_with_loss(graph, {"w", "b"});  // the same, not seeded
//
// The last has a new input `d_output`, the cotangent of the loss; ones give the plain gradient,
// from which the others start. Gradients are called `gradient of w` among the outputs.
//
// Cotangents of complex values are ∂L/∂z̄, for a real L. A complex output f is no such L: a seed g
// says which one is meant, L = 2·Re Σ conj(g)·f, whose cotangent at f is g. So the seed 1 asks for
// the gradient of 2·Re f, 1/2 for that of Re f, and i/2 for that of Im f; where f is holomorphic in
// z, what arrives is g·conj(f'(z)).
#pragma once

#include <vector>

#include "ricci/op/control.h"
#include "ricci/transform/transformed.h"

namespace ricci {

struct GradOptions {
  /// A value the loss does not depend on gets zeros; otherwise it is UserError(no_gradient).
  bool zero_missing_wrt = false;
  /// Of `grad_with_loss_opts`: the seed is ones instead of an input `d_output`.
  bool internal_seed = false;
  /// What is kept of scans that do not say it themselves (ScanOptions::saving): a byte budget for
  /// each of them, or one policy for all. As it is here, their carries.
  ScanSaving scan_saving = {};
  /// Of `grad`: the seed is an input `d_output` instead of ones.
  bool external_seed = false;

  [[nodiscard]] static GradOptions strict() { return {}; }
  [[nodiscard]] static GradOptions training() { return {.zero_missing_wrt = true}; }
};

/// Outputs `[loss, aux…, gradients…]`, gradients in the order of `wrt`, each of its value's type.
/// The first output is the function differentiated, of any shape; others are handed through. A new
/// input `d_output` has the loss's type. `wrt` may name any value, more than once.
[[nodiscard]] Transformed grad_with_loss(const Graph& forward, const std::vector<ValueRef>& wrt);
[[nodiscard]] Transformed grad_with_loss_opts(const Graph& forward,
                                              const std::vector<ValueRef>& wrt,
                                              const GradOptions& options);
/// The gradients as the only outputs, with `d_output` fixed to ones unless the options ask for it.
[[nodiscard]] Transformed grad(const Graph& forward, const std::vector<ValueRef>& wrt,
                               const GradOptions& options = {});
/// The same as grad_with_loss with `d_output` fixed to ones.
[[nodiscard]] Transformed value_and_grad(const Graph& forward, const std::vector<ValueRef>& wrt,
                                         const GradOptions& options = {});
/// One seed per float or complex output, named `d_output_<i>`; outputs `[outputs…, gradients…]`.
[[nodiscard]] Transformed vjp(const Graph& forward, const std::vector<ValueRef>& wrt,
                              const GradOptions& options = {});

}  // namespace ricci
