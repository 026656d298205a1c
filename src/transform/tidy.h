// What every transform does to its result before handing it over.
#pragma once

#include "ricci/transform/transformed.h"

namespace ricci {

/// As rewrite/tidy.h does it, with the way back to the caller's graph.
[[nodiscard]] Transformed tidied(Transformed t);

}  // namespace ricci
