// What a call makes and a kernel only puts where others want it, as a part of a larger array: the
// call writes it there itself, where the device can.
#pragma once

#include <utility>
#include <vector>

#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci::schedule {

/// `replaced`: outputs that lie where an input does.
void put_results_in_place(Program& program,
                          const std::vector<std::pair<BufferId, BufferId>>& replaced,
                          const Target& target);

/// Do two parts of one array have no element in common? True only where strides show it.
[[nodiscard]] bool lie_apart(const BufferView& a, const BufferView& b);

}  // namespace ricci::schedule
