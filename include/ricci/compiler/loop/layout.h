// Where the elements of a value are in memory, or in another value: an offset and one stride per
// axis, in elements. Views (transpose, slice, broadcast, most reshapes) are layouts of the value
// they look at.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ricci/type/type.h"

namespace ricci::loop {

struct Layout {
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
  bool operator==(const Layout&) const = default;
};

/// Holds for the elements whose place is in [0, limit).
struct Bound {
  Layout place;
  std::int64_t limit = 0;
  bool operator==(const Bound&) const = default;
};

/// Row-major without gaps.
[[nodiscard]] Layout contiguous(std::span<const std::int64_t> dims);
/// Is element number i (row-major) at offset i? Strides of axes of size 1 do not matter.
[[nodiscard]] bool is_contiguous(const Layout& layout, std::span<const std::int64_t> dims);
/// Is element number i at offset i / row: does every row of `row` elements share one element?
[[nodiscard]] bool is_per_row(const Layout& layout, std::span<const std::int64_t> dims,
                              std::int64_t row);
/// The same elements under another shape; nothing when no strides say so.
[[nodiscard]] std::optional<Layout> reshaped(const Layout& layout,
                                             std::span<const std::int64_t> from,
                                             std::span<const std::int64_t> to);
/// Right-aligned broadcasting of a value of shape `from` to `to`.
[[nodiscard]] Layout broadcast(const Layout& layout, std::span<const std::int64_t> from,
                               std::span<const std::int64_t> to);
[[nodiscard]] std::int64_t element_count(std::span<const std::int64_t> dims);

}  // namespace ricci::loop
