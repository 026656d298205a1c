// Which taps of a window matter. A kernel may reach far into the padding; what only ever sees
// padding is left out, so that work goes by the image and not by the kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ricci/support/error.h"
#include "ricci/type/dim.h"

namespace ricci::rule {

/// Taps [first, last) of one direction.
struct TapRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  [[nodiscard]] std::int64_t count() const { return last - first; }
};

/// The taps that window i has inside an image of `size`.
template <class Op>
[[nodiscard]] TapRange taps_inside(const Op& op, std::size_t direction, std::int64_t size,
                                   std::int64_t i) {
  const std::int64_t start = i * op.stride[direction] - op.padding[direction];
  return {std::max<std::int64_t>(0, -start), std::min(op.kernel_size[direction], size - start)};
}

/// From the first to the last tap that any of the windows has inside; all of them while sizes are
/// not known. UserError(refused) when there are too many to write out one by one.
template <class Op>
[[nodiscard]] TapRange taps_of_all(const Op& op, std::size_t direction, const Dim& size,
                                   const Dim& windows) {
  constexpr std::int64_t Most = 1 << 14;
  const auto n = size.try_value();
  const auto count = windows.try_value();
  TapRange taps{0, op.kernel_size[direction]};
  if (n && count && *count > 0) {
    taps = {taps_inside(op, direction, *n, *count - 1).first,
            taps_inside(op, direction, *n, 0).last};
  }
  if (taps.count() <= Most) return taps;
  throw UserError(ErrorCode::Refused,
                  "the windows of pooling are too large for this derivative, which writes out "
                  "each of their taps",
                  "pool in two steps with smaller windows");
}

}  // namespace ricci::rule
