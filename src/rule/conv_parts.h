// Convolutions and pooling of complex numbers by those of their parts.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::rule {

/// Whether a node is one of those below.
[[nodiscard]] bool is_by_parts(const Graph& graph, const Node& node);
/// A complex convolution, a gradient of one, or pooling, as one of real numbers: parts lie beside
/// each other on an axis of each factor that is not summed over, so one convolution makes all four
/// products of parts. Nothing for any other node.
[[nodiscard]] std::optional<std::vector<Value>> windows_by_parts(const Node& node,
                                                                 std::span<const Value> operands);

}  // namespace ricci::rule
