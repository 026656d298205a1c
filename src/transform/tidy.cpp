#include "transform/tidy.h"

#include "ricci/rewrite/cleanup.h"

namespace ricci {

Transformed tidied(Transformed t) {
  // Dead nodes first: merging would otherwise keep their results wanted.
  PassResult live = dead_code_elimination(t.graph);
  PassResult merged = common_subexpression_elimination(live.graph);
  PassResult clean = dead_code_elimination(merged.graph);
  t.map = t.map.then(live.map).then(merged.map).then(clean.map);
  t.graph = std::move(clean.graph);
  return t;
}

}  // namespace ricci
