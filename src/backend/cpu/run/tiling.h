// How the work of a kernel is cut for threads: in tiles, whose number depends on the shapes alone,
// never on how many threads there are.
#pragma once

#include <cstdint>

#include "ricci/compiler/loop/kernel.h"

#include "backend/cpu/run/code_source.h"

namespace ricci::cpu {

/// How many tiles a kernel is cut in.
[[nodiscard]] std::int64_t tile_count(const loop::Kernel& kernel);
/// The tile with a number, of so many.
[[nodiscard]] TileRange tile_range(const loop::Kernel& kernel, std::int64_t tiles,
                                   std::int64_t tile);

}  // namespace ricci::cpu
