// How many operations on numbers a call makes.
#pragma once

#include "ricci/schedule/program.h"

namespace ricci::schedule {

/// An estimate from shapes: multiplications and additions where products or recurrences make up the
/// work, one for each result otherwise. A function such as exp counts as one.
[[nodiscard]] double call_flops(const CallStep& call);

}  // namespace ricci::schedule
