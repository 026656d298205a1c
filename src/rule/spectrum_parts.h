// What the rules of transforms are written with.
#pragma once

#include "ricci/build/build.h"

namespace ricci::rule {

/// `x` with an axis of another size: cut at its end, or followed by zeros.
[[nodiscard]] Value resized(Value x, Axis axis, const Dim& size);

}  // namespace ricci::rule
