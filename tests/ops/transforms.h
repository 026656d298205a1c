// Counts of what the checks of transforms ran, for the closing summary.
#pragma once

#include <cstddef>

namespace ricci::testing {

struct TransformCounts {
  std::size_t cases = 0;
  std::size_t checks = 0;
};
[[nodiscard]] TransformCounts& transform_counts();

}  // namespace ricci::testing
