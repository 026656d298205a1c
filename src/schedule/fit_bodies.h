// Bodies of loops and branches under a memory budget. While a body runs, its temporaries are alive
// beside all that the program keeps over the step: what the budget leaves for them there is what
// the body is given.
#pragma once

#include <cstdint>

#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci::schedule {

/// Makes the bodies of those steps smaller that are too much for `budget`, until the temporaries of
/// the program, which have their places then, fit or no body has more to give. A body computes
/// values again in every trip, so this is for what the program itself could not save.
void fit_bodies(Program& program, std::int64_t budget, const Target& target);

}  // namespace ricci::schedule
