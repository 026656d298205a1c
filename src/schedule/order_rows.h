// The order in which kernels walk rows that have nothing to do with each other.
#pragma once

#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci::schedule {

/// Where arrays are read across the order of memory, rows that read neighbours there follow each
/// other: a device can then read a square of both axes at once. Where rows are short, many of one
/// axis follow each other: a device can then run them side by side.
void order_rows(Program& program, const KernelShape& shape);

}  // namespace ricci::schedule
