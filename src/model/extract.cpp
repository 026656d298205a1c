#include "model/extract.h"

#include <utility>

#include "ricci/ir/rebuild.h"

namespace ricci {

Graph extract(const Graph& graph, std::span<const ValueId> values) {
  std::vector<bool> needed(graph.size(), false);
  for (const ValueId v : values) needed[v.node] = true;
  for (std::size_t id = graph.size(); id-- > 0;) {
    if (!needed[id]) continue;
    for (const ValueId v : graph.nodes()[id].operands) needed[v.node] = true;
  }
  Rebuilder rebuild(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (needed[id]) rebuild.copy(id);
  }
  std::vector<ValueId> outputs;
  for (const ValueId v : values) outputs.push_back(rebuild(v));
  Graph out = std::move(rebuild.to());
  out.set_outputs(std::move(outputs));
  return out;
}

ValueRun::ValueRun(const Graph& graph, std::span<const ValueId> values,
                   const std::optional<Device>& device)
    : graph_(extract(graph, values)) {
  if (device) compiled_ = compile(graph_, *device);
}

std::vector<Tensor> ValueRun::run(const Feeds& feeds, const SymbolBindings& symbols) const {
  Feeds needed;
  for (const NodeId id : graph_.leaves()) {
    const auto given = feeds.find(*graph_.node(id).leaf_name());
    if (given != feeds.end()) needed.insert(*given);
  }
  const std::set<std::string> names = graph_.symbols();
  SymbolBindings sizes;
  for (const auto& [name, size] : symbols) {
    if (names.contains(name)) sizes.emplace(name, size);
  }
  if (compiled_) return compiled_->run(needed, {.symbols = std::move(sizes)});
  return interpret(graph_, needed, {.symbols = std::move(sizes)});
}

}  // namespace ricci
