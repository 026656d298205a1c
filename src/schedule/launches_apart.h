// Launches of one step run at the same time. Do they leave each other alone?
#pragma once

#include "ricci/compiler/schedule/program.h"

namespace ricci::schedule {

/// Nothing that one launch writes is read by another, or lies where another reads or writes. Pieces
/// of one array may be written by several. Kernels and buffers are those the program has.
[[nodiscard]] bool launches_apart(const Program& program, const KernelStep& step);

}  // namespace ricci::schedule
