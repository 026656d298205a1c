// Which temporaries share memory, and where each lies in the arena.
#pragma once

#include <vector>

#include "ricci/compiler/schedule/program.h"

#include "schedule/memory_plan.h"

namespace ricci::schedule {

/// How many bytes of temporaries are alive at every step, each a multiple of `alignment`.
[[nodiscard]] std::vector<std::int64_t> bytes_alive(const Program& program, std::int64_t alignment);

/// Gives every temporary that a step uses its place, and the program the size of its arena. The
/// steps are in their final order; places are multiples of `alignment` bytes. Where all of them
/// take at most `unshared` bytes, no two share memory.
void place_temporaries(Program& program, std::int64_t alignment, std::int64_t unshared = 0);

}  // namespace ricci::schedule
