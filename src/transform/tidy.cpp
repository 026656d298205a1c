#include "transform/tidy.h"

#include "rewrite/tidy.h"

namespace ricci {

Transformed tidied(Transformed t) {
  Change change = tidy(t.graph);
  if (!change) return t;
  t.map = t.map.then(change->map);
  t.graph = std::move(change->graph);
  return t;
}

}  // namespace ricci
