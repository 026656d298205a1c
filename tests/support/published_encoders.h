// The procedures by which block formats are published: scales from the largest magnitude, and for
// super-blocks a short search with weights of the values' own size. What our encoders are measured
// against.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ricci/quant/format.h"

namespace ricci::testing {

void published_encode(quant::Format format, std::span<const float> values,
                      std::span<std::byte> bytes);

/// What each value of a block counts in that procedure; all alike where it has no weights.
[[nodiscard]] std::vector<float> published_weights(quant::Format format,
                                                   std::span<const float> values);

}  // namespace ricci::testing
