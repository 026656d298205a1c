// Sums down few columns, as sums down many: a row of a few elements is no vector.
#pragma once

#include "ricci/compiler/schedule/target.h"

#include "rewrite/changes.h"

namespace ricci::schedule {

/// reduce(x[n, c], 0) -> reduce(reduce(x[n / k, k·c], 0) as [k, c], 0) where c is small: rows lie
/// one behind the other, so that k of them are one long row.
[[nodiscard]] Change widen_sums(const Graph& graph, const KernelShape& shape);

}  // namespace ricci::schedule
