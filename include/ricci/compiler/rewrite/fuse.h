// Passes that join ops which belong together. They change no value beyond the rounding of the
// dtype.
#pragma once

#include <cstdint>

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Joins `gaussian_splat_prepare` and the `gaussian_splat_rasterize` that alone reads it to
/// `gaussian_splat_render`, whose gradient has a kernel. What says how the scene is read comes from
/// the first, how pixels are composed from the second.
///   Before: any well-formed graph.
///   After: no rasterize reads a prepare that was made for it alone, with its camera, cutoff and
///   tiles.
[[nodiscard]] PassResult fuse_decomposed_gaussian_splat(const Graph& graph);

struct SharedInputOptions {
  /// Multiplications of the products of one group, together. What is saved is a start and a walk
  /// over the left operand; beyond this they are nothing beside the product itself.
  std::int64_t most_work = std::int64_t{1} << 18;
};

/// Makes one product of those that multiply one value with several matrices of params, such as the
/// queries, keys and values of attention: the matrices side by side, and the results cut out.
/// Groups are formed in node order. Gradients are those of the params.
///   Before: any well-formed graph; sizes that are not known are left alone.
///   After: products of a group are one. A compiled graph puts matrices of params whose values it
///   keeps side by side once, not in every run (`CompileOptions::pack_params`).
[[nodiscard]] PassResult fuse_shared_input_matmul(const Graph& graph,
                                                  const SharedInputOptions& options = {});

}  // namespace ricci
