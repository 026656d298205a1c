// Rules given as bodies, applied to values some of which are known to be zero.
#pragma once

#include <span>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::rule {

/// Copies a body into `target`. An invalid value stands for zeros, and so does an invalid output:
/// what is a multiple of zero is left out, whatever the other factor is, be it infinite. A function
/// that is not linear sees zeros.
[[nodiscard]] std::vector<Value> inline_with_absent(const Graph& body,
                                                    std::span<const Value> values, Graph& target);

}  // namespace ricci::rule
