// Runs an executable on feeds by name.
#pragma once

#include <vector>

#include "ricci/device/executable.h"
#include "ricci/interp/interpreter.h"

namespace ricci::testing {

/// The outputs of the graph that the executable was made from.
inline std::vector<Tensor> run_executable(const device::Executable& executable, const Graph& graph,
                                          const Feeds& feeds) {
  const std::unique_ptr<device::Context> context = executable.make_context();
  const std::vector<Tensor> values = check_feeds(graph, feeds).values;
  std::vector<const std::byte*> inputs;
  for (const Tensor& t : values) inputs.push_back(t.data());
  std::vector<Tensor> results;
  std::vector<std::byte*> outputs;
  for (const ValueId v : graph.outputs()) results.push_back(Tensor::zeros(graph.type(v)));
  for (Tensor& t : results) outputs.push_back(t.mutable_data());
  device::run(executable, *context, {inputs, outputs, 0, nullptr});
  return results;
}

}  // namespace ricci::testing
