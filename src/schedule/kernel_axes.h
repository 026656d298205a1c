// The axes of the kernel that a group of items becomes, and what items see of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ricci/compiler/loop/layout.h"

#include "schedule/fuse.h"

namespace ricci::schedule {

/// Which elements each axis stands for, outermost first.
struct Axes {
  std::vector<std::int64_t> behind;  ///< elements behind each axis
  std::vector<std::int64_t> extents;
  std::size_t kept = 0;
  std::size_t outer = 0;
};

[[nodiscard]] Axes axes_of(const Group& group);

/// A layout over an item's own axes as strides of the kernel's. `unit` elements of the kernel make
/// one of the item's.
[[nodiscard]] std::vector<std::int64_t> spread(const loop::Layout& layout, const StaticDims& dims,
                                               const Axes& axes, std::int64_t unit);

}  // namespace ricci::schedule
