#include "ricci/transform/transformed.h"

#include <fmt/format.h>

namespace ricci {

ValueId ValueRef::in(const Graph& graph) const {
  if (const auto* name = std::get_if<std::string>(&ref_)) return {graph.find_or_throw(*name), 0};
  const ValueId id = std::get<ValueId>(ref_);
  if (graph_ != nullptr && graph_ != &graph) {
    throw UserError(ErrorCode::Name,
                    fmt::format("the value belongs to the graph '{}', not to '{}'", graph_->name(),
                                graph.name()),
                    "refer to inputs and params by name, or to values by id");
  }
  if (id.node >= graph.size() || id.result >= graph.node(id.node).types.size() ||
      !graph.node(id.node).wanted[id.result]) {
    throw UserError(ErrorCode::Name, fmt::format("the graph '{}' has no value ({}, {})",
                                                 graph.name(), id.node, id.result));
  }
  return id;
}

}  // namespace ricci
