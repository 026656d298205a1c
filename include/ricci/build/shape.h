// Everyday ways to move elements, each a composition of slices, joins and views that compiles to
// plain copies.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ricci/build/build.h"

namespace ricci {

/// Elements pushed round along axes: out[…, i, …] = x[…, (i - shift) mod n, …]. Sizes are known.
Value roll(Value x, std::span<const std::int64_t> shifts, const Axes& axes,
           std::source_location loc = std::source_location::current());
Value roll(Value x, std::int64_t shift, Axis axis = -1,
           std::source_location loc = std::source_location::current());

/// x repeated side by side, `counts[a]` times along axis a; missing leading counts are 1, missing
/// leading axes of x too.
Value tile(Value x, std::span<const std::int64_t> counts,
           std::source_location loc = std::source_location::current());

/// Values of one type joined along a new axis.
Value stack(std::span<const Value> values, Axis axis = 0,
            std::source_location loc = std::source_location::current());

/// A slice of one axis as in NumPy, x[start:stop:step]: negative places count from the end, those
/// outside are moved to it, and a negative step walks backwards.
struct SliceRange {
  Axis axis = 0;
  std::optional<std::int64_t> start = {};
  std::optional<std::int64_t> stop = {};
  std::int64_t step = 1;
};
/// Several axes cut at once; the sizes of those are known.
Value slice(Value x, std::span<const SliceRange> ranges,
            std::source_location loc = std::source_location::current());
Value slice(Value x, const SliceRange& range,
            std::source_location loc = std::source_location::current());

/// The last two axes on and below diagonal k, and zeros above; k = 1 is one above the main one.
Value tril(Value x, std::int64_t k = 0, std::source_location loc = std::source_location::current());
/// The same on and above diagonal k.
Value triu(Value x, std::int64_t k = 0, std::source_location loc = std::source_location::current());

/// What is put around x: its mirror image without the edge (reflect) or with it (symmetric), the
/// edge repeated, or x again from its other end (wrap).
enum class PadMode : std::uint8_t { Reflect, Symmetric, Edge, Wrap };
constexpr auto enumerator_names(PadMode) {
  return std::to_array<std::string_view>({"reflect", "symmetric", "edge", "wrap"});
}
/// x with `low` and `high` elements of its own around it, by axis; any number of them, and negative
/// ones cut. Axes that are padded have known sizes.
Value pad_by(Value x, std::span<const std::int64_t> low, std::span<const std::int64_t> high,
             PadMode mode, std::source_location loc = std::source_location::current());

}  // namespace ricci
