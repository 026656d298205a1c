// The part of a graph that some of its values depend on, as a graph that gives them.
#pragma once

#include <span>
#include <vector>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"
#include "ricci/runtime/compiled_graph.h"

namespace ricci {

/// Outputs are `values`, in order; only inputs and params they depend on are left.
[[nodiscard]] Graph extract(const Graph& graph, std::span<const ValueId> values);

/// Some values of a graph, computed again and again: by the reference interpreter, or on a device.
class ValueRun {
 public:
  ValueRun(const Graph& graph, std::span<const ValueId> values,
           const std::optional<Device>& device);
  /// One tensor a value, in order. Feeds that are not needed are left out.
  [[nodiscard]] std::vector<Tensor> run(const Feeds& feeds,
                                        const SymbolBindings& symbols = {}) const;

 private:
  Graph graph_;
  std::optional<CompiledGraph> compiled_;
};

}  // namespace ricci
