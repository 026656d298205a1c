// Params that lie side by side for the products that read them: put together once, when their
// values are kept, and not in every run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::runtime {

/// A param that is made of others by moving their elements.
struct PackedParam {
  std::string name;                  ///< of the param, in the packed graph
  std::vector<std::string> sources;  ///< the params it is made of
  Graph maker;                       ///< from those to its value
};

struct Packing {
  /// Reads packed params where the old one joins others: the leaves of the old one in their order,
  /// then the packed params.
  Graph graph;
  std::vector<PackedParam> params;
};

/// A graph with products of one value joined and what is joined of params alone taken out; nothing
/// where there is none.
[[nodiscard]] std::optional<Packing> packing_of(const Graph& graph);

}  // namespace ricci::runtime
