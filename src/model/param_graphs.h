// Params behind values of a graph.
#pragma once

#include <string>
#include <vector>

#include "ricci/model/quantization.h"

namespace ricci {

/// Inputs, params and constants that a node depends on.
[[nodiscard]] std::vector<ValueId> leaves_of(const Graph& graph, const Node& node);

/// The name of the first param among them.
[[nodiscard]] std::string first_param(const Graph& graph, const Node& node);

/// The graph without params nobody reads, and the values of the others.
[[nodiscard]] FoldedParams read_params(const Graph& graph, const Feeds& params);

}  // namespace ricci
