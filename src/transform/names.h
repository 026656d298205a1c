// Names of values across a transform.
#pragma once

#include <string>

#include "ricci/ir/graph.h"
#include "ricci/op/leaf.h"

namespace ricci {

/// What stands for result `r` of an old node goes by its name, unless it has one of its own, as
/// inputs and params always have.
inline void keep_name(const Node& old, std::size_t r, Value now) {
  if (old.names[r].empty()) return;
  const ValueId id = now.id();
  const Node& node = now.graph().node(id.node);
  if (node.is_leaf() || !node.names[id.result].empty()) return;
  now.graph().set_value_name(id, old.names[r]);
}

/// As messages name a value: an input or param by its name, others as the text form does.
[[nodiscard]] std::string display_name(const Graph& graph, ValueId v);

}  // namespace ricci
