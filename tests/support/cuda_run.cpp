#include "support/cuda_run.h"

#include <stdexcept>

#include <fmt/format.h>

#include "support/compare.h"

namespace ricci::testing {

const std::string& why_no_cuda() {
  static const std::string why = [] {
    for (const DeviceListing& l : Device::all()) {
      if (l.name == "cuda") return l.why_not;
    }
    return std::string("this build has no back end for it");
  }();
  return why;
}

const Device& cuda_device() {
  static const Device device = Device::cuda();
  return device;
}

// Where arrays stay, the second run is captured and the third replayed.
std::vector<Tensor> run_on_cuda(const Graph& graph, const Feeds& feeds,
                                const CompileOptions& options) {
  const CompiledGraph compiled = compile(graph, cuda_device(), options);
  std::vector<Tensor> first = compiled.run(feeds);
  CheckedFeeds checked = check_feeds(graph, feeds);
  std::vector<const void*> inputs;
  for (Tensor& t : checked.values) {
    t = t.contiguous();
    inputs.push_back(t.data());
  }
  std::vector<Tensor> next;
  for (const Tensor& t : first) next.push_back(Tensor::zeros(t.type()));
  std::vector<void*> outputs;
  for (Tensor& t : next) outputs.push_back(t.mutable_data());
  ExecutionContext context = compiled.make_context(checked.bindings);
  for (int again = 0; again < 4; ++again) {
    compiled.run(context, inputs, outputs);
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (const auto r = same(next[i], first[i]); !r) {
        throw std::runtime_error(
            fmt::format("output {} is another one in run {}: {}", i, again + 2, r.message()));
      }
    }
  }
  return first;
}

Outcome cuda_outcome(const Graph& graph, const Feeds& feeds, const CompileOptions& options) {
  try {
    return run_on_cuda(graph, feeds, options);
  } catch (const UserError& e) {
    return e.code();
  }
}

}  // namespace ricci::testing
