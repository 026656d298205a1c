// What is done to a graph that was just built by a transform or for a device.
#pragma once

#include "rewrite/changes.h"

namespace ricci {

/// Simplifies without changing a bit, computes things once and drops what nothing depends on;
/// inputs and params stay.
[[nodiscard]] PassResult tidied(const Graph& graph);
[[nodiscard]] Change tidy(const Graph& graph);

}  // namespace ricci
