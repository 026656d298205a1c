// Passes that join ops which belong together. They change no value beyond the rounding of the
// dtype.
#pragma once

#include <cstdint>

#include "ricci/compiler/rewrite/legalize.h"
#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Products with a bias along their columns, and the function of the sum where nothing else reads
/// it, as `fused_matmul_bias_act`.
///   Before: any well-formed graph.
///   After: what was joined is gone, and so is dead code; so it is after all passes of this header
///   that join a pattern.
[[nodiscard]] PassResult fuse_matmul_bias_act(const Graph& graph);

/// Residual sums of one shape, with a bias or without, and the `layer_norm` along the last axis
/// behind them, as `fused_residual_ln`. Where the sum is read again it is the second result.
[[nodiscard]] PassResult fuse_residual_ln(const Graph& graph);
/// The same for `rms_norm`.
[[nodiscard]] PassResult fuse_residual_rms_norm(const Graph& graph);

/// `rms_norm` behind the reshape that joins its leading axes, in place of before it.
[[nodiscard]] PassResult fuse_rms_norm_reshape(const Graph& graph);

/// x·u times silu(x·g), for matrices u and g of one shape, as one product with both side by side
/// and `fused_swiglu`.
[[nodiscard]] PassResult fuse_swiglu_dual_matmul(const Graph& graph);

/// One half of a value times silu of the other, as `fused_swiglu`.
[[nodiscard]] PassResult fuse_swiglu(const Graph& graph);

struct AttentionBlockOptions {
  /// Batch times sequence. What is saved is starts and walks, which are nothing beside longer ones.
  std::int64_t most_rows = 64;
};
/// Attention over thirds of one product, rotated or not, with the product behind it, as
/// `fused_attention_block`; sizes that are not known are left alone.
[[nodiscard]] PassResult fuse_attention_block(const Graph& graph,
                                              const AttentionBlockOptions& options = {});

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

/// All of these whose ops are claimed, dense layers and norms first, then regions: what a back end
/// with kernels for fused ops is given. Ours make the same kernels of the nodes themselves, so it
/// gains nothing there.
[[nodiscard]] PassResult fuse_patterns(const Graph& graph, const SupportedOps& supported = {});

}  // namespace ricci
