#include "ricci/transform/jvp.h"

#include <fmt/format.h>

#include "transform/autodiff_errors.h"
#include "transform/codes.h"
#include "transform/forward.h"
#include "transform/leaves.h"
#include "transform/names.h"
#include "transform/tidy.h"

namespace ricci {

Transformed jvp(const Graph& graph, const std::vector<ValueRef>& tangent_for) {
  Forward forward(graph);
  forward.copy_leaves();
  std::map<std::string, std::string, std::less<>> names;
  for (const std::string& leaf : leaf_names(graph, tangent_for)) {
    const ValueId v{graph.find_or_throw(leaf), 0};
    require_tangent(leaf, graph, v);
    const std::string name = "tangent_" + leaf;
    if (names.contains(name)) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' is listed twice", leaf));
    }
    const std::string chosen = forward.graph().unique_name(name);
    names[name] = chosen;
    forward.set_tangent(v, forward.graph().input(chosen, type_of_tangent(graph, v)));
  }
  with_autodiff_errors([&] { forward.sweep(); });
  std::vector<Value> outputs;
  for (const ValueId v : graph.outputs()) outputs.push_back(forward.value(v));
  for (const ValueId v : graph.outputs()) outputs.push_back(forward.tangent_or_zero(v));
  Transformed t = forward.finish(outputs);
  t.graph.set_name(graph.name() + "_jvp");
  t.names = std::move(names);
  t = tidied(std::move(t));
  OutputNames called;
  called.keep(graph);
  called.add_each("tangent of", graph);
  called.give_to(t.graph);
  return t;
}

}  // namespace ricci
