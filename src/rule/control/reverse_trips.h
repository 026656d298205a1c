// The sweep back through the trips of a while loop, as a scan over its bound.
#pragma once

#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::rule {

struct ReverseTrips {
  std::vector<Value> carries;  ///< as they entered the loop
  std::vector<Value> tapes;    ///< invalid for a carry that every trip hands on as it is
  Value trip_count;
  std::vector<Value> upstreams;       ///< one per carry; invalid where there is none
  std::vector<Value> tape_upstreams;  ///< cotangents of the tapes, one per carry, in the same way
  std::int64_t max_iterations = 0;
  std::int64_t checkpoints = 0;
  const Graph* body_vjp = nullptr;
  const Graph* forward_body = nullptr;
};

/// The cotangents of the carries that have one. Trips that were not made are not differentiated.
[[nodiscard]] std::vector<Value> sweep_back(Graph& graph, const ReverseTrips& trips);

}  // namespace ricci::rule
