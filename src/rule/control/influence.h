// Which results of a node with bodies each operand can influence through a derivative.
#pragma once

#include <functional>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::rule {

/// influence[k][r]: operand (or input) k has a part in result (or output) r.
using Influence = std::vector<std::vector<bool>>;

/// `of_body` says the same of a body. An op whose rules are its user's own counts as all to all.
[[nodiscard]] Influence influence_of(const Node& node,
                                     const std::function<Influence(const Graph&)>& of_body);

}  // namespace ricci::rule
