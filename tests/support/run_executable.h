// Runs an executable on feeds by name.
#pragma once

#include <vector>

#include "ricci/compiler/device/executable.h"
#include "ricci/compiler/device/memory.h"
#include "ricci/interp/interpreter.h"

#include "runtime/staging.h"

namespace ricci::testing {

/// The outputs of the graph that the executable was made from. `memory` is that of its device.
inline std::vector<Tensor> run_executable(const device::Executable& executable, const Graph& graph,
                                          const Feeds& feeds,
                                          device::Memory& memory = device::host_memory()) {
  const std::unique_ptr<device::Context> context = executable.make_context();
  std::vector<Tensor> values = check_feeds(graph, feeds).values;
  for (Tensor& t : values) t = t.contiguous();
  std::vector<const std::byte*> inputs;
  for (const Tensor& t : values) inputs.push_back(t.data());
  std::vector<Tensor> results;
  std::vector<std::byte*> outputs;
  for (const ValueId v : graph.outputs()) results.push_back(Tensor::zeros(graph.type(v)));
  for (Tensor& t : results) outputs.push_back(t.mutable_data());
  runtime::Staging staging(memory, executable.program());
  for (std::size_t k = 0; k < inputs.size(); ++k) staging.stage_input(k, inputs[k]);
  for (std::size_t o = 0; o < outputs.size(); ++o) staging.stage_output(o, outputs[o], -1);
  device::run(executable, *context, {inputs, outputs, 0, nullptr});
  staging.collect();
  return results;
}

}  // namespace ricci::testing
