// Nodes by name: patterns with '*' for any characters and '?' for one.
#pragma once

#include <string_view>

#include "ricci/ir/graph.h"

namespace ricci {

[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view text);

/// Does a pattern fit the op's name or, unless `ops_only`, a name of a result or the builder's
/// label?
[[nodiscard]] bool is_meant(std::string_view pattern, const Node& node, bool ops_only = false);

}  // namespace ricci
