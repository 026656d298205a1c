// What the guards of derivative rules come to on values that are guarded already. A formula that
// goes wrong at 0 is given `z = where(x == 0, 1, x)`; its own derivative asks `z == 0`, which never
// holds. Knowing that lets a chain of derivatives lead back to itself.
#pragma once

#include <functional>
#include <optional>

#include "ricci/ir/graph.h"

namespace ricci::rule {

/// Where a value really is: values that are known to be equal are one.
using Resolve = std::function<ValueId(ValueId)>;

/// The value that a `where` always gives because of how its condition was guarded; nothing when
/// that is not known, or the value would have to be broadcast.
[[nodiscard]] std::optional<ValueId> always_chosen(const Graph& graph, const Node& node,
                                                   const Resolve& resolved);

}  // namespace ricci::rule
