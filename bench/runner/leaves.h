// The inputs and params of a graph in the order executors bind them.
#pragma once

#include <string>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci::bench {

struct Leaf {
  std::string name;
  Type type;
};
/// Inputs, then params.
[[nodiscard]] std::vector<Leaf> leaves_of(const Graph& graph);

/// What a row-major buffer of a type without symbols takes.
[[nodiscard]] std::size_t byte_size(const Type& type);

}  // namespace ricci::bench
