// Products of tiles by all four warps of a block at once (wgmma, sm_90a), out of shared memory
// where rows of 128 bytes lie swizzled. A source has them beside the products of single warps: the
// compiler takes those that its architecture has.
#pragma once

#include <cstdint>
#include <string>

namespace ricci::cuda {

/// Whether the architecture that a source is compiled for has them.
inline constexpr const char* HasWarpgroups = "defined(__CUDA_ARCH_FEAT_SM90_ALL)";

/// The statement that adds to the numbers `d` of 64 rows and `columns` columns the product of 16
/// numbers of the rows that `a` describes, or of the factors `f`, and those that `b` describes.
[[nodiscard]] std::string warpgroup_product(std::int64_t columns, bool factors);

/// Functions for rows of `S` with `WIDE` numbers, a multiple of 64, and tiles of TILE rows.
[[nodiscard]] std::string warpgroup_text(std::int64_t tile);

}  // namespace ricci::cuda
