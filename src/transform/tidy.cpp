#include "transform/tidy.h"

#include "rewrite/tidy.h"

namespace ricci {

Transformed tidied(Transformed t) {
  PassResult r = tidied(t.graph);
  t.map = t.map.then(r.map);
  t.graph = std::move(r.graph);
  return t;
}

}  // namespace ricci
