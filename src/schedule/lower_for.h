// What an op is to the compiler on a device: its form, but that running totals whose columns the
// device cannot share out are the call they are elsewhere.
#pragma once

#include <cstdint>
#include <optional>

#include "ricci/compiler/rule/lower.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci::schedule {

[[nodiscard]] Lowering lower_for(const KernelShape& shape, const Graph& graph, const Node& node);

/// How many columns a running total along an axis walks down together: all, or a part where there
/// are few rows above to share out. Nothing when no part divides them.
[[nodiscard]] std::optional<std::int64_t> running_row(const StaticDims& dims, std::size_t axis,
                                                      const KernelShape& shape);

/// The element counts behind each axis that is longer than 1, times `unit`; all of them at the end.
[[nodiscard]] std::vector<std::int64_t> boundaries_of(const StaticDims& dims, std::int64_t unit);
/// Both sets in one chain of divisors; nothing when an axis of one straddles an axis of the other.
[[nodiscard]] std::optional<std::vector<std::int64_t>> joined(const std::vector<std::int64_t>& a,
                                                              const std::vector<std::int64_t>& b);
/// The longest part of a row of `n` elements, from `least` to `limit`, that `n` is a multiple of
/// and that straddles none of `axes`; nothing when there is none.
[[nodiscard]] std::optional<std::int64_t> part_of_row(std::int64_t n, std::int64_t least,
                                                      std::int64_t limit,
                                                      const std::vector<std::int64_t>& axes);

}  // namespace ricci::schedule
