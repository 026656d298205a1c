// Views that see their array only within bounds, as padding makes them.
#pragma once

#include <optional>
#include <vector>

#include "ricci/compiler/loop/layout.h"

namespace ricci::schedule {

/// The bounds of a view of shape `dims` that matter: one for every direction, none that always
/// holds. Nothing when no element is within all of them.
[[nodiscard]] std::optional<std::vector<loop::Bound>> needed_bounds(std::vector<loop::Bound> bounds,
                                                                    const StaticDims& dims);

}  // namespace ricci::schedule
