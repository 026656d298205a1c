// What the normalisations and the fused ops that contain them share.
#pragma once

#include <vector>

#include "ricci/compiler/rule/nd.h"

namespace ricci::rule {

/// An element of x: its row-major position, and where along the channel axis it lies.
struct NormElement {
  std::size_t at = 0;
  std::size_t channel = 0;
};
/// The elements that have their statistics in common.
using NormRow = std::vector<NormElement>;

/// One row per position on the other axes.
[[nodiscard]] std::vector<NormRow> rows_along(const StaticDims& dims, std::size_t axis);
/// One row per example and group of channels; dims are [N, C, spatial…].
[[nodiscard]] std::vector<NormRow> rows_of_groups(const StaticDims& dims, std::int64_t groups);

/// Whether the mean is subtracted (layer and group norm) or taken as 0 (rms norm).
enum class Centred : bool { No, Yes };

/// y = γ x̂ + β, with x̂ = (x - μ)/√(mean (x - μ)² + eps) over each row
[[nodiscard]] RealNd normalised(const RealNd& x, const std::vector<NormRow>& rows,
                                const RealNd& gamma, const RealNd& beta, double eps,
                                Centred centred);

}  // namespace ricci::rule
