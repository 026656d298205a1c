// Views of what is computed, as computations of views: what is computed is then only what is looked
// at, in the order in which it is looked at, and nothing is copied afterwards.
#pragma once

#include "rewrite/changes.h"

namespace ricci::schedule {

/// transpose(add(a, b)) -> add(transpose(a), transpose(b)), and so for slices, strides and mirror
/// images of chains of ops that are read by nobody else, or by several slices, which together look
/// at no more than there is; and sums of transposed arrays as sums of the arrays. Calls read views
/// as they are: what only they look at stays.
[[nodiscard]] Change views_first(const Graph& graph);

}  // namespace ricci::schedule
