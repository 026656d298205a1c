// Gaussian splats: from the ops to the geometry of their call.
#pragma once

#include "ricci/compiler/loop/call.h"
#include "ricci/compiler/rule/nd.h"
#include "ricci/op/gaussian_splat.h"

namespace ricci::rule {

/// Sizes of all operands.
using OperandDims = std::span<const StaticDims>;

[[nodiscard]] loop::Splats splats_of(const op::GaussianSplatRender& op, OperandDims operands);
[[nodiscard]] loop::Splats splats_of(const op::GaussianSplatBackward& op, OperandDims operands);
[[nodiscard]] loop::Splats splats_of(const op::GaussianSplatPrepare& op, OperandDims operands);
[[nodiscard]] loop::Splats splats_of(const op::GaussianSplatRasterize& op, OperandDims operands);

/// Of the way back: the first operand that says what the way there has found, and which of those
/// are the lists.
inline constexpr std::size_t FirstKnown = 8;
inline constexpr std::size_t KnownIds = 7;

/// The highest band that is evaluated, of those a scene with so many coefficients has.
[[nodiscard]] std::int64_t highest_band(std::int64_t asked, std::int64_t coefficients);

/// The attributes of one op as another's, as far as both have them.
[[nodiscard]] op::GaussianSplatRender render_of(const op::GaussianSplatBackward& op);
[[nodiscard]] op::GaussianSplatBackward backward_of(const op::GaussianSplatRender& op);
[[nodiscard]] op::GaussianSplatPrepare prepare_of(const op::GaussianSplatRender& op);
[[nodiscard]] op::GaussianSplatRasterize rasterize_of(const op::GaussianSplatRender& op);

}  // namespace ricci::rule
