// Passes that write ops out in simpler ones, each by its expansion. They change no value beyond the
// rounding of the dtype.
#pragma once

#include <cstdint>

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Writes batch regions as one region per plane and a concat, and transform regions step by step.
///   Before: any well-formed graph.
///   After: there is no `batch_elementwise_region` and no `transform_region`.
[[nodiscard]] PassResult decompose_fusion_regions(const Graph& graph);

/// What a region may have at most; larger ones are taken apart.
struct RegionLimits {
  std::int64_t max_steps = 0;
  std::int64_t max_inputs = 0;

  /// No region is small enough.
  [[nodiscard]] static RegionLimits unfuse_all() { return {}; }
};
/// Writes regions over the limits as one node per step.
///   Before: any well-formed graph.
///   After: every `elementwise_region` is within the limits.
[[nodiscard]] PassResult unfuse_elementwise_regions(
    const Graph& graph, const RegionLimits& limits = RegionLimits::unfuse_all());

/// The same under its name in pipelines: regions within the limits stay.
[[nodiscard]] inline PassResult clip_elementwise_regions(const Graph& graph,
                                                         const RegionLimits& limits) {
  return unfuse_elementwise_regions(graph, limits);
}

/// Writes reductions over several axes as one after the other, the highest axis first. Maxima and
/// minima are taken over the axes joined into one instead, so that ties share a gradient as before.
///   Before: any well-formed graph.
///   After: every `reduce` has at most one axis.
[[nodiscard]] PassResult legalize_multi_axis_reduce(const Graph& graph);

/// Writes reductions as reductions of the last axis: those axes are moved to the end, by one
/// transpose at most, and joined.
///   Before: any well-formed graph.
///   After: every `reduce` of some axes is of the last one alone.
[[nodiscard]] PassResult lower_non_last_axis_reduce(const Graph& graph);

/// Writes `group_norm` as a reshape, the norm of centred rows, and a scale per channel.
[[nodiscard]] PassResult lower_group_norm(const Graph& graph);
/// Writes nearest resizes in moves of elements.
[[nodiscard]] PassResult lower_resize_nearest_2x(const Graph& graph);

/// Writes out fused ops and `lora_matmul`; `selective_scan` and `gated_delta_net` step by step.
///   Before: sequences have known lengths; UserError(needs_static_dim) otherwise.
///   After: none of these ops is left.
[[nodiscard]] PassResult unfuse_fused_for_autodiff(const Graph& graph);

/// Writes `dot_general` as `matmul`, with transposes and reshapes where its axes need them.
///   Before: any well-formed graph.
///   After: there is no `dot_general`.
[[nodiscard]] PassResult lower_dot_general(const Graph& graph);

/// Writes out the ops that only gradients have: the transposes of a convolution as convolutions,
/// those of pooling and picking by comparing and scattering.
///   Before: any well-formed graph.
///   After: no `…_backward…` op is left.
[[nodiscard]] PassResult decompose_backward_ops(const Graph& graph);

/// Fixes the cotangents of a gradient graph to ones: inputs with the role d_output are gone.
///   Before: any well-formed graph.
///   After: no input has that role, bodies aside. This is the one pass that changes a signature.
[[nodiscard]] PassResult internalize_d_output(const Graph& graph);

}  // namespace ricci
