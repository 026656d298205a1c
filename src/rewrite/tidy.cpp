#include "rewrite/tidy.h"

#include "ricci/rewrite/canonicalize.h"
#include "ricci/rewrite/cleanup.h"

namespace ricci {

PassResult tidied(const Graph& graph) {
  PassResult all{graph, IdMap::identity(graph), false};
  const auto apply = [&](PassResult r) {
    all.map = all.map.then(r.map);
    all.graph = std::move(r.graph);
    all.changed = all.changed || r.changed;
  };
  // Dead nodes first: merging would otherwise keep their results wanted.
  apply(dead_code_elimination(all.graph));
  apply(canonicalize(all.graph));
  apply(common_subexpression_elimination(all.graph));
  apply(dead_code_elimination(all.graph));
  return all;
}

}  // namespace ricci
