// Runs a compiled graph with buffers of the caller's, outputs in those of the inputs they replace.
#pragma once

#include <algorithm>
#include <vector>

#include "ricci/interp/interpreter.h"
#include "ricci/runtime/compiled_graph.h"

namespace ricci::testing {

/// The outputs of a graph of known sizes.
inline std::vector<Tensor> run_in_place(const Graph& graph, const Feeds& feeds,
                                        const Device& device, const CompileOptions& options) {
  const CompiledGraph f = compile(graph, device, options);
  std::vector<Tensor> inputs;
  for (const Tensor& t : check_feeds(graph, feeds).values) {
    inputs.push_back(Tensor::from_bytes(t.type(), t.contiguous().bytes()));
  }
  std::vector<Tensor> outputs;  // those without an input are tensors of their own
  for (std::size_t o = 0; o < f.outputs().size(); ++o) {
    outputs.push_back(Tensor::zeros(f.outputs()[o]));
  }
  std::vector<const void*> in;
  for (const Tensor& t : inputs) in.push_back(t.data());
  std::vector<void*> out;
  for (Tensor& t : outputs) out.push_back(t.mutable_data());
  for (const Donation& d : options.donations) {
    const auto port = std::ranges::find(f.inputs(), d.input, &Port::name);
    out[d.output] = inputs[static_cast<std::size_t>(port - f.inputs().begin())].mutable_data();
  }
  ExecutionContext context = f.make_context();
  f.run(context, in, out);
  std::vector<Tensor> results;
  for (std::size_t o = 0; o < out.size(); ++o) {
    const auto bytes = static_cast<std::size_t>(outputs[o].numel() * size_of(outputs[o].dtype()));
    results.push_back(
        Tensor::from_bytes(outputs[o].type(), {static_cast<const std::byte*>(out[o]), bytes}));
  }
  return results;
}

}  // namespace ricci::testing
