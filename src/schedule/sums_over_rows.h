// How a kernel's sums over rows are cut, and the room they take.
#pragma once

#include <cstdint>
#include <vector>

#include "ricci/compiler/loop/kernel.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/op/reduce.h"

namespace ricci::schedule {

/// Into how many chunks sums over rows are cut: one where the kept rows are work enough to share.
[[nodiscard]] std::int64_t chunks_of(const loop::Kernel& k, const KernelShape& shape);
/// Where every chunk is a row: for each accumulator the argument in which all its elements are
/// stored in order, so that there is nothing to accumulate. Nothing where there is not one for
/// each.
[[nodiscard]] std::vector<std::int32_t> stored_rows(const loop::Kernel& k);
/// Makes a kernel one that accumulates nothing, and whose rows are all kept.
void accumulate_nothing(loop::Kernel& k);
/// What the product of many numbers is kept in: in f32 the first few of many factors may leave the
/// range, whatever the others are.
[[nodiscard]] DType product_in(DType dtype);
/// What a running total is kept in: double for sums of f32 and products of floats, which are as
/// long as the axis.
[[nodiscard]] DType running_in(ReduceKind kind, DType dtype);
/// A long sum of f32 one row after the other loses digits with every row: it has room to be made in
/// blocks.
[[nodiscard]] std::int64_t local_elements(const loop::Kernel& k, const loop::Accumulator& acc,
                                          std::int64_t length);

}  // namespace ricci::schedule
