// Gaussian splats in primitives: every pixel against every splat, [B, P, N]. What is
// differentiable in the ops, for what has no kernel: tangents, and gradients of gradients.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "ricci/build/build.h"

namespace ricci::rule {

/// The image, from operands 0 to 6.
[[nodiscard]] Value rendered(const op::GaussianSplatRender& op, std::span<const Value> operands);

/// What gaussian_splat_prepare gives but its lists: color_alpha, pos_local, inv_scale, quaternion,
/// rays.
[[nodiscard]] std::array<Value, 5> prepared(const op::GaussianSplatPrepare& op,
                                            std::span<const Value> operands);

/// The image from what was prepared, and the transmittance in front of every pixel's last hit.
[[nodiscard]] std::array<Value, 2> rasterized(const op::GaussianSplatRasterize& op,
                                              std::span<const Value> operands);

}  // namespace ricci::rule
