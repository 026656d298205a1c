// What happens when a rule gives something its op cannot have.
#pragma once

#include <string>

#include "ricci/ir/graph.h"

namespace ricci::rule {

/// `'matmul'`, or `the op 'name' (version 2)` for a registered one.
[[nodiscard]] std::string name_in_messages(const Node& node);

/// UserError(shape) for a registered op, whose rules are its author's; InternalError for ours.
[[noreturn]] void fail_rule(const Node& node, std::string message);

}  // namespace ricci::rule
