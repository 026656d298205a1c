// Passes that take control flow apart: for backends without it, and for tests. Differentiation does
// not need them: `if`, `while` and `scan` have derivatives of their own that keep them whole.
#pragma once

#include <cstdint>
#include <limits>

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Writes out both branches of every `if` and selects between their results.
///   Before: any well-formed graph.
///   After: there is no `if`, bodies included. Both branches run: a fault in the one that was not
///   taken is reported, and its work is done.
[[nodiscard]] PassResult inline_if(const Graph& graph);

/// Writes out every `while` as often as it may run at most; trips after the condition has turned
/// false leave the carries as they are. The trip count and the tapes are given too.
///   Before: every `while` has max_iterations; UserError(unbounded_loop) names one that has not.
///   After: there is no `while`, bodies included.
[[nodiscard]] PassResult unroll_while(const Graph& graph);

/// `inline_if`, then `unroll_while`.
[[nodiscard]] PassResult lower_control_flow(const Graph& graph);

struct UnrollOptions {
  /// Steps written out per trip of the loop that is left; there is none left when it would make
  /// fewer than two trips.
  std::int64_t factor = std::numeric_limits<std::int64_t>::max();
};
/// Writes out the steps of scans: all of them, or `factor` at a time. Nothing else unrolls a scan.
///   Before: scans have known lengths; UserError(needs_static_dim) otherwise.
///   After: a scan that is left makes at least two trips of `factor` steps each. A scan that keeps
///   some carries only (checkpoints) is not unrolled in part.
[[nodiscard]] PassResult unroll_scans(const Graph& graph, const UnrollOptions& options = {});

/// Replaces custom functions without any derivative rule by their forward bodies.
///   Before: any well-formed graph.
///   After: every `custom_fn` has a `vjp` or a `jvp` body.
[[nodiscard]] PassResult inline_custom_fn_for_autodiff(const Graph& graph);

/// Turns the bcasts of scans into xs, repeated for every step; xs come after them.
///   Before: any well-formed graph.
///   After: no scan has bcasts. Needs memory for every step: gradients do not need this pass.
[[nodiscard]] PassResult materialize_bcasts_for_ad(const Graph& graph);

/// Makes scans keep their carries: the final value becomes a row of the trajectory.
///   Before: any well-formed graph.
///   After: every scan has save_trajectory; one with K checkpoints keeps K rows, of which the one
///   that the last step made is the final carry.
[[nodiscard]] PassResult convert_scans_for_ad(const Graph& graph);

}  // namespace ricci
