#include "rewrite/tidy.h"

#include "support/phases.h"

namespace ricci {

Change tidy(const Graph& graph) {
  const Phase phase("tidy");
  Changes changes(graph);
  // Dead nodes first: merging would otherwise keep their results wanted.
  changes.apply(drop_dead_code(changes.graph()));
  changes.apply(apply_rules(changes.graph()));
  changes.apply(merge_common(changes.graph()));
  changes.apply(drop_dead_code(changes.graph()));
  return changes.take();
}

PassResult tidied(const Graph& graph) { return or_unchanged(graph, tidy(graph)); }

}  // namespace ricci
