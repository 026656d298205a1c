// What a run of the reference kernels takes, worked out before anything is allocated.
#pragma once

#include <cstdint>

#include "ricci/ir/graph.h"

namespace ricci {

/// The most bytes that are in use at once, besides the values fed, and while which node of `graph`
/// runs. Sizes are numbers.
struct PeakMemory {
  std::int64_t bytes = 0;
  NodeId node = 0;
};
[[nodiscard]] PeakMemory peak_memory(const Graph& graph);

/// UserError(out_of_memory) when a run would take more than `limit` bytes; 0 is what there is.
void require_memory(const Graph& graph, std::int64_t limit);

}  // namespace ricci
