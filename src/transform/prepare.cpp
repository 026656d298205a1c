#include "ricci/transform/prepare.h"

#include "ricci/compiler/rewrite/prepare.h"

#include "transform/autodiff_errors.h"

namespace ricci {

PassResult prepare_graph_for_ad(const Graph& graph) {
  return with_autodiff_errors([&] { return prepare_for_autodiff(graph); });
}

}  // namespace ricci
