// Attention of small floats through tensor cores (mma.sync, sm_80 and newer). Products are of small
// floats, their sums in f32; weights are rounded before they meet the values. Every sum has one
// owner, so the bits are always the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/structured/attention_text.h"

namespace ricci::cuda {

/// How many rows a block has, and of how many others at a time it is told in shared memory.
struct AttentionBlock {
  static constexpr std::int32_t threads = 128;
  std::int64_t groups = 1;  ///< of 16 rows that a warp has
  std::int64_t tile = 64;

  [[nodiscard]] std::int64_t rows() const { return groups * 16 * (threads / 32); }
};

/// Device functions of all kernels. They use what `tensor_names` defines.
[[nodiscard]] std::string_view attention_fragments();

/// Widths of a head in shared memory: whole sixteens.
[[nodiscard]] std::int64_t tensor_depth(std::int64_t width);
/// Bytes of so many rows of keys' width and of values' width there.
[[nodiscard]] std::int64_t tensor_bytes(const loop::Attention& a, std::int64_t keys,
                                        std::int64_t values);

[[nodiscard]] std::string tensor_names(const PlanBuilder& builder, const loop::Attention& a,
                                       const AttentionArrays& arrays, const AttentionBlock& block);
/// q, k, v and the mask.
[[nodiscard]] std::vector<Parameter> tensor_inputs(const PlanBuilder& builder,
                                                   const loop::Attention& a,
                                                   const AttentionArrays& arrays);

/// 16 rows of a warp or 32: as many as keep the GPU busy with so many heads of `rows` rows.
[[nodiscard]] std::int64_t tensor_groups(std::int64_t heads, std::int64_t rows);

/// Blocks for all rows of all heads.
[[nodiscard]] std::int64_t tensor_blocks(std::int64_t heads, std::int64_t rows,
                                         const AttentionBlock& block);

/// What kernels whose blocks have queries begin with.
[[nodiscard]] std::string_view own_queries();

/// What becomes of the forward pass: results, or what the gradients begin with.
struct ForwardResults {
  Place out;  ///< of attention; or, with `gradient`, nothing
  Place lse;  ///< the lse of every query; or, with `gradient`, pairs of it and Σ P dP
  bool has_lse = true;
  DType lse_dtype = DType::F32;
  bool gradient = false;
};
void plan_tensor_pass(PlanBuilder& builder, const loop::Attention& a, const AttentionArrays& arrays,
                      const ForwardResults& to);

}  // namespace ricci::cuda
