// How the work of a kernel is cut for threads: in tiles, whose number depends on the shapes alone,
// never on how many threads there are.
#pragma once

#include <cstdint>
#include <vector>

#include "ricci/compiler/loop/kernel.h"

#include "backend/cpu/run/code_source.h"

namespace ricci::cpu {

/// Too few elements for code that is long.
[[nodiscard]] bool is_short_kernel(const loop::Kernel& kernel);
/// Strides in elements as near as these share vectors: they are read a few lines at a time.
inline constexpr std::int64_t NearStride = 8;
/// Loads whose neighbours in memory lie along the last kept axis, not along the row. Where there
/// are some, a tile is a part of the columns too, in `inner_first` and `inner_last`: what one row
/// reads of a cache line is left for the rows after it.
[[nodiscard]] std::vector<loop::Reg> crossed_loads(const loop::Kernel& kernel);

/// How many tiles a kernel is cut in.
[[nodiscard]] std::int64_t tile_count(const loop::Kernel& kernel);
/// The tile with a number, of so many.
[[nodiscard]] TileRange tile_range(const loop::Kernel& kernel, std::int64_t tiles,
                                   std::int64_t tile);
/// Rows [first, last) of a kernel that accumulates nothing; of a flat one, elements.
[[nodiscard]] TileRange range_of_rows(const loop::Kernel& kernel, std::int64_t first,
                                      std::int64_t last);

}  // namespace ricci::cpu
