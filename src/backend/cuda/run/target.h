// The scheduler's picture of a GPU.
#pragma once

#include "ricci/compiler/schedule/target.h"

namespace ricci::cuda {

[[nodiscard]] const schedule::Target& target();

}  // namespace ricci::cuda
