// Copying one graph into another by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

/// Values for the inputs (or params) of a graph that is copied, by name.
using NamedValues = std::map<std::string, Value, std::less<>>;

/// Copies `source` into `target`: its inputs become the values bound to their names; its params
/// become those bound to theirs, or params of `target` of the same name, added when there is none.
/// Gives the outputs. UserError(name) when an input has no binding, UserError(shape) when one has
/// another type.
[[nodiscard]] std::vector<Value> inline_into(Graph& target, const Graph& source,
                                             const NamedValues& inputs,
                                             const NamedValues& params = {});

}  // namespace ricci
