// Attention in tiles: products of tiles by tensor cores (mma.sync, sm_80 and newer) for small
// floats, by the lanes in f32. Sums are in f32 and weights are rounded before they meet the values.
// Every sum has one owner, so the bits are always the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/structured/attention_text.h"

namespace ricci::cuda {

/// How many rows a block has, and how many others come at a time.
struct AttentionBlock {
  static constexpr std::int32_t threads = 128;
  bool tensors = true;      ///< products are those of tensor cores
  std::int64_t groups = 1;  ///< of 16 rows that a warp has
  std::int64_t tile = 64;
  std::int64_t splits = 1;  ///< of the keys: so many blocks have the same queries
  bool together = false;    ///< rows are queries of all heads that share keys
  std::int64_t copies = 1;  ///< of a tile: with two, one comes while the other is computed with

  [[nodiscard]] std::int64_t rows() const { return groups * 16 * (threads / 32); }
};

/// What a kernel needs of registers and of shared memory, by how it is cut into blocks.
struct AttentionNeeds {
  std::int64_t sums = 0;    ///< numbers of a row that are summed up
  std::int64_t scores = 1;  ///< products of a row with a tile that are held at once
  std::int64_t own = 0;     ///< of a row that stays in shared memory: numbers of a head
  std::int64_t other = 0;   ///< of a row of a tile
  bool overlaps = true;     ///< of two copies of a tile, one may come while the other is used
  std::int64_t tile = 64;   ///< at most
};
/// The largest block that there is room for, two of them at once if that can be, of no more rows
/// than keep the GPU busy.
[[nodiscard]] AttentionBlock attention_block(const PlanBuilder& builder, bool tensors,
                                             std::int64_t heads, std::int64_t rows,
                                             const AttentionNeeds& needs);
[[nodiscard]] BlockRoom room_of(const AttentionBlock& block, const AttentionNeeds& needs);

/// Widths of a head in shared memory: whole sixteens.
[[nodiscard]] std::int64_t tile_depth(std::int64_t width);

/// What a kernel's text begins with.
[[nodiscard]] std::string tile_names(const PlanBuilder& builder, const loop::Attention& a,
                                     const AttentionArrays& arrays, const AttentionBlock& block);
/// Device functions of all kernels. They use what `tile_names` defines.
[[nodiscard]] std::string attention_fragments(bool tensors, std::int64_t tile);
/// What kernels whose blocks have queries begin with.
[[nodiscard]] std::string_view own_queries();
/// Products `s` become scores, -∞ where a query does not see a key. Rows of it are queries, or
/// keys.
[[nodiscard]] std::string masked_scores(bool queries_in_rows);
/// The text with words in the place of a name, which is in it once.
[[nodiscard]] std::string with(std::string text, std::string_view name, std::string_view words);

/// q, k, v and the mask.
[[nodiscard]] std::vector<Parameter> tile_inputs(const PlanBuilder& builder,
                                                 const loop::Attention& a,
                                                 const AttentionArrays& arrays);

/// Blocks for all rows of all heads.
[[nodiscard]] std::int64_t tile_blocks(std::int64_t heads, std::int64_t rows,
                                       const AttentionBlock& block);

/// Are products those of tensor cores? In f16 the gradient of a score may be too large or too small
/// to be rounded before it is multiplied.
[[nodiscard]] bool multiplies_with_tensors(DType dtype, loop::Pass pass);

/// What becomes of the forward pass: results, or what the gradients begin with.
struct ForwardResults {
  Place out;  ///< of attention; with `given` nothing
  Place lse;  ///< the lse of every query; with `given` pairs of it and Σ P dP
  bool has_lse = true;
  DType lse_dtype = DType::F32;
  std::optional<Place> given = {};  ///< the gradient of `out`
};
void plan_tile_pass(PlanBuilder& builder, const loop::Attention& a, const AttentionArrays& arrays,
                    const ForwardResults& to);

}  // namespace ricci::cuda
