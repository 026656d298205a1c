// All CUDA code of a program as one text to read.
#pragma once

#include <string>

#include "ricci/compiler/schedule/program.h"

namespace ricci::cuda {

/// Every kernel and written-out loop once, with the lines of the user's source they come from and
/// how they are launched; bodies of loops and branches behind the program itself.
[[nodiscard]] std::string program_text(const Program& program);

}  // namespace ricci::cuda
