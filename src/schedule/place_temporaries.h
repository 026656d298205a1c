// Which temporaries share memory, and where each lies in the arena.
#pragma once

#include "ricci/compiler/schedule/program.h"

namespace ricci::schedule {

/// Gives every temporary that a step uses its place, and the program the size of its arena. The
/// steps are in their final order; places are multiples of `alignment` bytes.
void place_temporaries(Program& program, std::int64_t alignment);

}  // namespace ricci::schedule
