#include "transform/names.h"

#include <fmt/format.h>

#include "ricci/ir/text.h"

namespace ricci {

std::string display_name(const Graph& graph, ValueId v) {
  const Node& node = graph.node(v.node);
  if (const std::string* name = node.leaf_name()) return *name;
  return "%" + value_names(graph)[v.node][v.result];
}

void OutputNames::keep(const Graph& graph) {
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const std::string& given = graph.given_output_name(i);
    names_.push_back(given);
    if (!given.empty()) taken_.insert(given);
  }
}

void OutputNames::add(std::string name) {
  std::string unique = name;
  for (int k = 2; !taken_.insert(unique).second; ++k) unique = fmt::format("{} ({})", name, k);
  names_.push_back(std::move(unique));
}

void OutputNames::add_each(std::string_view of, const Graph& graph) {
  for (const std::string& name : graph.output_names()) add(fmt::format("{} {}", of, name));
}

void OutputNames::give_to(Graph& graph) const {
  check_internal(names_.size() == graph.outputs().size(), "every output has a name or none");
  for (std::size_t i = 0; i < names_.size(); ++i) graph.set_output_name(i, names_[i]);
}

}  // namespace ricci
