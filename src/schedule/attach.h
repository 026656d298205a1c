// Kernels that go on with what a call makes, element by element, become part of the call's step: a
// device runs them on each part of the result while it is in the cache.
//
//   call matmul(…) -> (b3)          call matmul(…) -> (b5)
//   launch k0(b3, b2, b5)     →       then k0(b5, b2, b5)
//
// Where nobody else wants the result of the call, the kernel overwrites it.
#pragma once

#include <utility>
#include <vector>

#include "ricci/schedule/program.h"

namespace ricci::schedule {

/// `replaced`: outputs, each with the input whose memory it fills. Comes before kernels are put
/// side by side and memory is planned.
void attach_kernels(Program& program, const std::vector<std::pair<BufferId, BufferId>>& replaced);

}  // namespace ricci::schedule
