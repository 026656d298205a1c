// Names the parser accepts besides the ops' own: the specification's one-gradient builders and
// other spellings. They print as the op they build.
#pragma once

#include <string_view>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

/// A statement that uses an alias, ready to be built.
struct AliasCall {
  Graph& graph;
  std::vector<Value> operands;
  std::vector<NamedAttr> attrs;
  std::vector<Body> bodies;
};

/// Builds the statement and gives the values its result names stand for.
using AliasBuilder = std::vector<Value> (*)(AliasCall& call);

/// The builder of an alias, or nullptr. Defined with the builders.
[[nodiscard]] AliasBuilder find_alias(std::string_view name);
[[nodiscard]] std::vector<std::string> all_aliases();
/// The op an alias builds and prints as, or those an attribute of it chooses from.
[[nodiscard]] std::vector<OpKind> alias_ops(std::string_view name);

}  // namespace ricci
