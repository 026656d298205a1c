// How a kernel's sums over rows are cut, and the room they take.
#pragma once

#include <cstdint>

#include "ricci/compiler/loop/kernel.h"
#include "ricci/compiler/schedule/target.h"

namespace ricci::schedule {

/// Into how many chunks sums over rows are cut: one where the kept rows are work enough to share.
[[nodiscard]] std::int64_t chunks_of(const loop::Kernel& k, const KernelShape& shape);
/// A long sum of f32 one row after the other loses digits with every row: it has room to be made in
/// blocks.
[[nodiscard]] std::int64_t local_elements(const loop::Kernel& k, const loop::Accumulator& acc,
                                          std::int64_t length);

}  // namespace ricci::schedule
