// What all kernels for attention begin with: sizes, places, which keys a query sees, and what
// becomes of a plain product of the two.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backend/cuda/structured/plan_builder.h"

namespace ricci::cuda {

struct AttentionText {
  DType dtype = DType::F32;  ///< of q, k, v
  DType sum = DType::F32;
  DType mask = DType::F32;
  std::int64_t rows = 1;                ///< a block has so many queries, or keys
  std::int64_t tile = 16;               ///< and goes through the others by so many
  std::string_view size_suffix = "LL";  ///< of how many queries and keys there are
};

/// `#define STORED_Y …`: y as it is stored.
[[nodiscard]] std::string stored_as(std::string_view name, DType dtype);

[[nodiscard]] inline bool is_wanted(const CallStep& step, std::size_t r) {
  return r < step.results.size() && step.results[r].buffer >= 0;
}

/// Operands as kernels read them, and where heads lie in them and in the results.
struct AttentionArrays {
  Place q, k, v, mask, dy, lse, mean;
  loop::HeadStrides q_at, k_at, v_at, dy_at;
  loop::HeadStrides out_at, dq_at, dk_at, dv_at;
};
/// Can heads be written to a result that lies so? Only those of gradients.
[[nodiscard]] bool writes_heads(const loop::Attention& a, std::size_t result, const Type& type,
                                const loop::Layout& layout);
[[nodiscard]] AttentionArrays attention_arrays(PlanBuilder& builder, const loop::Attention& a);

[[nodiscard]] std::string attention_names(const loop::Attention& a, const AttentionArrays& arrays,
                                          const AttentionText& text);

/// Is attention of this type and size computed in tiles?
[[nodiscard]] bool has_tiles(const loop::Attention& a, DType dtype);
/// The forward pass.
void plan_forward_tiles(PlanBuilder& builder, const loop::Attention& a,
                        const AttentionArrays& arrays);
/// The gradients of q, k and v. `rows` has room for the lse of every query and for the mean that
/// its gradient needs.
void plan_backward_tiles(PlanBuilder& builder, const loop::Attention& a,
                         const AttentionArrays& arrays, Place rows);

}  // namespace ricci::cuda
