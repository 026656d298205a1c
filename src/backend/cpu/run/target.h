// What the scheduler is told about this machine's processor.
#pragma once

#include "ricci/compiler/schedule/target.h"

namespace ricci::cpu {

[[nodiscard]] const schedule::Target& target();

}  // namespace ricci::cpu
