// Kernels that wait for nothing of each other become one step: a device shares out their work
// together, with one start and one end for all.
//
//   launch k0(…)                launch side by side
//   launch k1(…)        →         k0(…)
//   launch k2(…)                  k1(…)
//                                 k2(…)
#pragma once

#include <utility>
#include <vector>

#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci::schedule {

/// A step of launches that are independent of each other.
[[nodiscard]] Step kernel_step(std::vector<Launch> launches);

/// `replaced`: outputs, each with the input whose memory it fills. Comes before memory is planned.
void put_side_by_side(Program& program, const std::vector<std::pair<BufferId, BufferId>>& replaced,
                      const Target& target);

}  // namespace ricci::schedule
