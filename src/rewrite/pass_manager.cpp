#include <chrono>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/pass.h"
#include "ricci/ir/verify.h"
#include "ricci/support/stop.h"

#include "support/float_environment.h"

namespace ricci {
namespace {

void verify_after(const Pass& pass, const Graph& graph) {
  const std::vector<Diagnostic> faults = find_faults(graph);
  if (faults.empty()) return;
  std::string message = fmt::format("the pass '{}' broke the graph '{}':", pass.name, graph.name());
  for (const Diagnostic& d : faults) (message += '\n') += d.to_string();
  throw InternalError(std::move(message));
}

}  // namespace

PassManager::PassManager(std::vector<Pass> passes, PassManagerOptions options)
    : passes_(std::move(passes)), options_(std::move(options)) {}

PipelineResult PassManager::run(const Graph& graph) const {
  const DefaultFloatEnvironment floats;
  if (options_.verify_each) verify(graph);
  PipelineResult all{graph, IdMap::identity(graph), false, {}};
  for (const Pass& pass : passes_) {
    throw_if_stopped();
    const std::size_t before = count_nodes(all.graph);
    const auto start = std::chrono::steady_clock::now();
    PassResult result = pass.run(all.graph);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (options_.verify_each) verify_after(pass, result.graph);
    if (options_.after) options_.after(pass, result);
    all.reports.push_back(
        {pass.name, result.changed, before, count_nodes(result.graph), elapsed.count()});
    all.map = all.map.then(result.map);
    all.changed = all.changed || result.changed;
    all.graph = std::move(result.graph);
  }
  return all;
}

}  // namespace ricci
