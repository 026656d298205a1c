// Passes that put several nodes into one region: what the scheduler does with their loops, said in
// the graph, for back ends that take regions. They change no value beyond the rounding of f16 and
// bf16 between steps. `unfuse_elementwise_regions` and `decompose_fusion_regions` undo them.
#pragma once

#include "ricci/compiler/rewrite/pass.h"
#include "ricci/compiler/rewrite/unfuse.h"

namespace ricci {

/// Limits of back ends that keep what a region reads in registers.
inline constexpr RegionLimits UsualRegionLimits{.max_steps = 32, .max_inputs = 16};

/// Makes regions of element-wise functions, casts, comparisons and selections: a node joins the one
/// node that reads it. Single nodes are left alone.
///   Before: any well-formed graph.
///   After: what was joined is gone, and so is dead code; no region has more steps or inputs than
///   the limits say.
[[nodiscard]] PassResult mark_elementwise_regions(const Graph& graph,
                                                  const RegionLimits& limits = UsualRegionLimits);

/// Makes transform regions of chains of resizes, crops, flips and transposes in which each is read
/// by the next one only and one is a resize.
///   Before: any well-formed graph.
///   After: what was joined is gone, and so is dead code.
[[nodiscard]] PassResult mark_transform_regions(const Graph& graph);

/// Where an element-wise region, or a function of one value, is what alone reads a nearest resize,
/// makes a transform region of both, which reads the smaller image. Its first input is that image.
///   Before: any well-formed graph.
///   After: what was joined is gone, and so is dead code.
[[nodiscard]] PassResult fuse_region_prologue(const Graph& graph);

}  // namespace ricci
