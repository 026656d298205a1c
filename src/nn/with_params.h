// Functions of models are traced with an input for each leaf; as programs they have params.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::detail {

/// The graph with its first `params` inputs as params, in their places; the others get these names,
/// as far as there are any. One input may be left out that nobody reads.
[[nodiscard]] Graph with_params(const Graph& graph, std::size_t params,
                                const std::vector<std::string>& others = {},
                                std::optional<NodeId> left_out = {});

}  // namespace ricci::detail
