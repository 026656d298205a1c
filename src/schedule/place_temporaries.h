// Which temporaries share memory, and where each lies in the arena.
#pragma once

#include <vector>

#include "ricci/compiler/schedule/program.h"

#include "schedule/memory_plan.h"

namespace ricci::schedule {

/// When each buffer is wanted; nothing for those that are no temporaries, and for those that take
/// the place of another, which lives on for them.
[[nodiscard]] std::vector<Lifetime> lifetimes_with_sharing(const Program& program);

/// Gives every temporary that a step uses its place, and the program the size of its arena. The
/// steps are in their final order; places are multiples of `alignment` bytes.
void place_temporaries(Program& program, std::int64_t alignment);

}  // namespace ricci::schedule
