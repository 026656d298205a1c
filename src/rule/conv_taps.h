// Convolutions over three or more spatial axes by convolutions over one less.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::rule {

/// Whether a node is one of those below.
[[nodiscard]] bool is_by_taps(const Node& node);
/// A convolution over more than two spatial axes, or a gradient of one, as a sum over the taps of
/// its first spatial axis: the planes a tap sees are images of one convolution over the others.
/// Planes in the padding take no part. Nothing for any other node.
[[nodiscard]] std::optional<std::vector<Value>> convolution_by_taps(
    const Node& node, std::span<const Value> operands);

}  // namespace ricci::rule
