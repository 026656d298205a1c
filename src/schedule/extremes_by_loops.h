// Where the extremes are, as loops: what the extreme is, then the first place that has it. Both
// fuse with what makes the elements, and columns and long rows are shared out as any reduction.
#pragma once

#include "rewrite/replace_nodes.h"

namespace ricci::schedule {

/// A search for places of extremes as ops that lower to loops; nothing for other nodes, and for
/// axes whose places no i32 counts.
[[nodiscard]] NewResults extremes_by_loops(const NodeVisit& visit);

}  // namespace ricci::schedule
