// A compiled graph that many threads run with arrays: contexts that wait for the next run, and
// memory for results.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ricci/runtime/compiled_graph.h"

#include "support/fork.h"

namespace ricci::detail {

class ArrayProgram {
 public:
  /// Compiles for the standard device.
  explicit ArrayProgram(const Graph& graph);
  /// Runs with pointers to row-major elements, in the order of the graph's inputs.
  [[nodiscard]] std::vector<Tensor> run(std::span<const void* const> inputs);

 private:
  class Lease;

  CompiledGraph compiled_;
  std::vector<Type> outputs_;
  ForkMutex mutex_;
  std::vector<ExecutionContext> idle_;
};

/// Room for a value, not filled.
[[nodiscard]] Tensor room_for(const Type& type, void*& data);

}  // namespace ricci::detail
