#include "array/transform_cache.h"

#include <list>
#include <mutex>

#include "ricci/ir/graph.h"
#include "ricci/support/error.h"

#include "support/fork.h"

namespace ricci::detail {
namespace {

constexpr std::size_t MostKept = 256;

struct Kept {
  std::shared_ptr<const Callee> source;
  std::string what;
  std::shared_ptr<const MadeFunctions> made;
};
struct Cache {
  ForkMutex mutex;
  std::list<Kept> kept;  // those asked for last come first
};
// Never destroyed: functions of static storage may be called until the very end.
Cache& cache() {
  static Cache& c = *new Cache;
  return c;
}

std::shared_ptr<const MadeFunctions> find(const Callee& source, const std::string& what) {
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  for (auto it = c.kept.begin(); it != c.kept.end(); ++it) {
    if (it->source->hash != source.hash || it->what != what) continue;
    if (!(it->source->graph == source.graph)) continue;
    c.kept.splice(c.kept.begin(), c.kept, it);
    return it->made;
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const MadeFunctions> made_from(
    const std::shared_ptr<const Callee>& source, const std::string& what,
    const std::function<MadeFunctions(const Graph&)>& make) {
  if (auto made = find(*source, what)) return made;
  auto made = std::make_shared<const MadeFunctions>(make(source->graph));
  Cache& c = cache();
  std::list<Kept> dropped;
  const std::lock_guard lock(c.mutex);
  c.kept.push_front({source, what, made});
  if (c.kept.size() > MostKept) dropped.splice(dropped.end(), c.kept, std::prev(c.kept.end()));
  return made;
}

MadeFunction make_function(Graph graph) {
  MadeFunction out;
  for (const NodeId id : graph.leaves()) out.inputs.push_back(*graph.node(id).leaf_name());
  out.callee = std::make_shared<const Callee>(std::move(graph));
  return out;
}

MadeFunction make_function(Transformed transformed) {
  MadeFunction out = make_function(std::move(transformed.graph));
  out.added = std::move(transformed.names);
  return out;
}

const std::string& MadeFunction::name_of(std::string_view conventional) const {
  const auto it = added.find(conventional);
  check_internal(it != added.end(), "a transform has not added an input that is asked for");
  return it->second;
}

NamedArrays named_inputs(const Graph& graph, std::span<const Array> arrays) {
  NamedArrays out;
  std::size_t k = 0;
  for (const NodeId id : graph.leaves()) out.emplace(*graph.node(id).leaf_name(), arrays[k++]);
  return out;
}

std::vector<Array> call_made(const MadeFunction& f, const NamedArrays& arrays,
                             std::source_location where) {
  std::vector<Array> operands;
  for (const std::string& name : f.inputs) operands.push_back(arrays.at(name));
  return call_node(f.callee, std::move(operands), where);
}

}  // namespace ricci::detail
