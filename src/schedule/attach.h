// Kernels that make what a call reads, or go on with what it makes, element by element, become part
// of the call's step: a device runs them on each part of the operand or the result while it is in
// the cache.
//
//   launch k0(b0, b2)               first k0(b0, b2)
//   call matmul(b2, …) -> (b3)  →   then call matmul(b2, …) -> (b5)
//   launch k1(b3, b4, b5)             then k1(b5, b4, b5)
//
// Where nobody else wants the result of the call, the kernel behind it overwrites it.
#pragma once

#include <utility>
#include <vector>

#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci::schedule {

/// `replaced`: outputs, each with the input whose memory it fills. Comes before kernels are put
/// side by side and memory is planned.
void attach_kernels(Program& program, const std::vector<std::pair<BufferId, BufferId>>& replaced,
                    const Target& target);

}  // namespace ricci::schedule
