// What every transform does to its result before handing it over.
#pragma once

#include "ricci/transform/transformed.h"

namespace ricci {

/// Simplifies without changing a bit, computes things once and drops what nothing depends on;
/// inputs and params stay.
[[nodiscard]] Transformed tidied(Transformed t);

}  // namespace ricci
