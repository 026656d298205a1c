// Branches without bodies.
#pragma once

#include "rewrite/replace_nodes.h"

namespace ricci {

/// Of an `if`: where(predicate, then(captures…), else(captures…)), result by result. Nothing for
/// other nodes.
[[nodiscard]] NewResults both_branches(const NodeVisit& visit);

}  // namespace ricci
