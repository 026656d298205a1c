// Is a program one that can be run? For programs that were read, not made.
#pragma once

#include "ricci/schedule/program.h"

namespace ricci::schedule {

/// UserError(file) when a step names a buffer, kernel or body there is not, or a buffer lies
/// outside the arena.
void check_program(const Program& program);

}  // namespace ricci::schedule
