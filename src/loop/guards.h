// Guards where two axes of a kernel are joined into one.
#pragma once

#include "ricci/compiler/loop/kernel.h"

namespace ricci::loop {

/// Can the guard see the axes `axis - 1` and `axis`, the latter of `extent`, as one?
[[nodiscard]] bool joins_axes(const Guard& guard, std::size_t axis, std::int64_t extent);
/// Writes it for that: its stride along `axis` is then the joint axis's.
void write_for_joined(Guard& guard, std::size_t axis, std::int64_t extent);

}  // namespace ricci::loop
