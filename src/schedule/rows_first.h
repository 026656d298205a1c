// What the steps of a loop compute of their own rows, and not of what is handed from step to step,
// is computed for all steps at once before the loop, where a device does much at the same time: the
// gradient of a loop computes again what the forward pass did, which waits for nothing.
#pragma once

#include "rewrite/changes.h"

namespace ricci::schedule {

/// Scans whose bodies read such values as rows of further xs.
[[nodiscard]] Change rows_first(const Graph& graph);

}  // namespace ricci::schedule
