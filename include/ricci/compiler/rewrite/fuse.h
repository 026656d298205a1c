// Passes that join ops which belong together. They change no value beyond the rounding of the
// dtype.
#pragma once

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Joins `gaussian_splat_prepare` and the `gaussian_splat_rasterize` that alone reads it to
/// `gaussian_splat_render`, whose gradient has a kernel. What says how the scene is read comes from
/// the first, how pixels are composed from the second.
///   Before: any well-formed graph.
///   After: no rasterize reads a prepare that was made for it alone, with its camera, cutoff and
///   tiles.
[[nodiscard]] PassResult fuse_decomposed_gaussian_splat(const Graph& graph);

}  // namespace ricci
