// Names of values across a transform.
#pragma once

#include <set>
#include <string>
#include <vector>

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

/// What the outputs of a transformed graph are called.
class OutputNames {
 public:
  /// The next outputs are those of `graph`, and go by the names they were given there.
  void keep(const Graph& graph);
  /// The next output; of two that would be called the same the second is `name (2)`.
  void add(std::string name);
  /// `of` with what each output of `graph` is called behind it: "tangent of loss".
  void add_each(std::string_view of, const Graph& graph);
  /// Names all outputs, of which there are as many as were told.
  void give_to(Graph& graph) const;

 private:
  std::vector<std::string> names_;  // empty: as its value
  std::set<std::string> taken_;
};

}  // namespace ricci
