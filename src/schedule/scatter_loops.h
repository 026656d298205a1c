// Scatters as loops, where loops say them at least as well as a call: then they fuse with what is
// around them. What is added to a row is found by comparing every index with the number of the row;
// where the indices are known, by looking up which update it is.
#pragma once

#include "ricci/compiler/schedule/target.h"

#include "rewrite/replace_nodes.h"

namespace ricci::schedule {

/// Whether an op is one of those.
[[nodiscard]] bool is_scatter(const Op& op);
/// A scatter with integer indices as ops that lower to loops; nothing for other nodes, and where
/// the target takes the call. An index out of range is a fault as before.
[[nodiscard]] NewResults scatter_by_loops(const NodeVisit& visit, const Target& target);

}  // namespace ricci::schedule
