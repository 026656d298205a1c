#include "transform/tidy.h"

#include "ricci/rewrite/canonicalize.h"
#include "ricci/rewrite/cleanup.h"

namespace ricci {

Transformed tidied(Transformed t) {
  const auto apply = [&](PassResult r) {
    t.map = t.map.then(r.map);
    t.graph = std::move(r.graph);
  };
  // Dead nodes first: merging would otherwise keep their results wanted.
  apply(dead_code_elimination(t.graph));
  apply(canonicalize(t.graph));
  apply(common_subexpression_elimination(t.graph));
  apply(dead_code_elimination(t.graph));
  return t;
}

}  // namespace ricci
