// Rematerialisation: a program that needs more memory than it may take computes some values again
// where they are read next, instead of keeping them until then.
//
//   b3 = k0(b0)                       b3 = k0(b0)
//   b4 = k1(b3)                       b4 = k1(b3)
//   …  (b3 is kept)             →     …
//   b9 = k8(b3, b8)                   b10 = k0(b0)
//                                     b9 = k8(b10, b8)
//
// It works on finished steps of the whole program, forward and backward: what is computed again is
// the same kernel or call on the same operands, so no bit of a result changes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci::schedule {

/// Adds steps until the temporaries of a program, which have their places then, take at most
/// `budget` bytes, or no step helps. At every turn, of what lies idle where most is alive, the
/// value goes whose bytes are cheapest to compute again; where that is not enough, bodies of loops
/// and branches are planned again with the room that is left. `replaced`: outputs, each with the
/// input whose memory it fills.
void recompute_to_fit(Program& program, std::int64_t budget,
                      const std::vector<std::pair<BufferId, BufferId>>& replaced,
                      const Target& target);

}  // namespace ricci::schedule
