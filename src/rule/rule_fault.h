// What happens when a rule gives something its op cannot have.
#pragma once

#include <string>
#include <string_view>

#include "ricci/ir/graph.h"

namespace ricci::rule {

/// `'matmul'`, or `the op 'name' (version 2)` for a registered one.
[[nodiscard]] std::string name_in_messages(const Node& node);

/// UserError(shape) for a registered op, whose rules are its author's; InternalError for ours.
[[noreturn]] void fail_rule(const Node& node, std::string message);

/// What a rule gives belongs to the graph it is asked to build in.
void require_graph(const Node& node, std::string_view rule, const Value& given, const Graph& graph);

}  // namespace ricci::rule
