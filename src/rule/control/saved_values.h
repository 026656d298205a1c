// Which inner values of a body a gradient keeps: what the policies of checkpoints and scans mean.
#pragma once

#include <span>
#include <string>

#include "ricci/ir/graph.h"

namespace ricci::rule {

/// Everything but what costs nothing to make again, results of products and convolutions, or values
/// by their names.
enum class Saved : std::uint8_t { All, Matmuls, Named };

[[nodiscard]] bool is_saved(Saved what, std::span<const std::string> names, const Node& node,
                            std::size_t result);

}  // namespace ricci::rule
