// What the interpreter knows of a graph's signature: its inputs and params.
#pragma once

#include <optional>
#include <string>

#include "ricci/ir/graph.h"

namespace ricci {

struct Leaf {
  std::string name;
  Type type;
};

/// The input or param a node is, if it is one.
[[nodiscard]] std::optional<Leaf> leaf_of(const Node& node);

/// Throws a UserError about a feed, at the place of its leaf.
[[noreturn]] void fail_feed(ErrorCode code, const Node& node, std::string message,
                            std::string help = {});

}  // namespace ricci
