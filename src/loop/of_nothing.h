// Where reductions begin: what they give for no elements. Schedules, back ends and the interpreter
// of programs ask here.
#pragma once

#include "ricci/compiler/loop/kernel.h"

namespace ricci::loop {

/// In the class of numbers that holds the dtype. Means and logs of sums, which are written by
/// others, have none; complex numbers have no extremes.
[[nodiscard]] Number reduction_of_nothing(ReduceKind kind, DType dtype);

}  // namespace ricci::loop
