// Cutting a graph of values and derivatives in two: what depends on seeds or directions, which is
// linear in them, and the rest, done once for a point.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ricci/transform/transformed.h"

namespace ricci {

struct HalvesOptions {
  std::string first_suffix;
  std::string second_suffix;
  /// Inputs and params that the second half reads are its inputs and params, by their names;
  /// otherwise they are residuals as all else.
  bool leaves_by_name = false;
};

struct SplitHalves {
  Transformed first;                   ///< outputs: the graph's, then the residuals
  Graph second;                        ///< of what it reads, then of the seeds or directions
  std::vector<std::string> reads;      ///< the names of what it reads, in order
  std::vector<std::string> residuals;  ///< those of them that the first half gives
};

/// `both` gives the outputs of `graph` and then derivatives; its new inputs are in `both.names`.
[[nodiscard]] SplitHalves split_in_two(const Graph& graph, const Transformed& both,
                                       const HalvesOptions& options);

}  // namespace ricci
