#include "ricci/transform/transformed.h"

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/support/text.h"

namespace ricci {
namespace {

// The value that the text form calls %name.
ValueId find_value(const Graph& graph, std::string_view name) {
  std::vector<std::string> known;
  const auto names = value_names(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    for (std::uint32_t r = 0; r < names[id].size(); ++r) {
      if (!graph.nodes()[id].wanted[r]) continue;
      if (names[id][r] == name) return {id, r};
      known.push_back(names[id][r]);
    }
  }
  const auto close = nearest(name, known);
  throw UserError(ErrorCode::Name,
                  fmt::format("the graph '{}' has no value '%{}'", graph.name(), name),
                  close ? fmt::format("did you mean '%{}'?", *close)
                        : "'ricci print' shows the names of all values");
}

}  // namespace

ValueId ValueRef::in(const Graph& graph) const {
  if (const auto* name = std::get_if<std::string>(&ref_)) {
    if (name->starts_with('%') && !graph.find(*name)) return find_value(graph, name->substr(1));
    return {graph.find_or_throw(*name), 0};
  }
  const auto* handle = std::get_if<Value>(&ref_);
  if (handle != nullptr && &handle->graph() != &graph) {
    throw UserError(ErrorCode::Name,
                    fmt::format("the value belongs to another graph than '{}'", graph.name()),
                    "refer to inputs and params by name, or to values by id");
  }
  const ValueId id = handle != nullptr ? handle->id() : std::get<ValueId>(ref_);
  if (id.node >= graph.size() || id.result >= graph.node(id.node).types.size() ||
      !graph.node(id.node).wanted[id.result]) {
    throw UserError(ErrorCode::Name, fmt::format("the graph '{}' has no value ({}, {})",
                                                 graph.name(), id.node, id.result));
  }
  return id;
}

}  // namespace ricci
