// Gradients of slices that lie side by side, put together instead of added up.
#pragma once

#include <optional>

#include "ricci/ir/graph.h"

namespace ricci {

/// The sum of two values that are each a slice with zeros around it, where the slices follow each
/// other along one axis: their concatenation with zeros around that, or alone when none are left.
/// Nothing when they are not of that kind.
[[nodiscard]] std::optional<Value> joined_slices(Value a, Value b);

}  // namespace ricci
