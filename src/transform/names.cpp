#include "transform/names.h"

#include "ricci/ir/text.h"

namespace ricci {

std::string display_name(const Graph& graph, ValueId v) {
  const Node& node = graph.node(v.node);
  if (const auto* in = node.op.as<op::Input>()) return in->name;
  if (const auto* p = node.op.as<op::Param>()) return p->name;
  return "%" + value_names(graph)[v.node][v.result];
}

}  // namespace ricci
