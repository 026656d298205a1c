#include "transform/names.h"

#include "ricci/ir/text.h"

namespace ricci {

std::string display_name(const Graph& graph, ValueId v) {
  const Node& node = graph.node(v.node);
  if (const std::string* name = node.leaf_name()) return *name;
  return "%" + value_names(graph)[v.node][v.result];
}

}  // namespace ricci
