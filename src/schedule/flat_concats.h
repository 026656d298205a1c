// Arrays joined along an axis, and the result joined with more along the same one, are one array of
// all parts: none of them is copied twice. Gradients of arrays that were cut up are of this kind.
#pragma once

#include "rewrite/changes.h"

namespace ricci::schedule {

/// Reads the parts of a concat that nobody but another concat along its axis reads.
[[nodiscard]] Change flat_concats(const Graph& graph);

}  // namespace ricci::schedule
