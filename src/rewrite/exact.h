// Which ops give the same bits on every backend: those that round once, or not at all.
#pragma once

#include "ricci/ir/graph.h"

namespace ricci {

/// Is every result of this node determined to the bit by its operands? True for arithmetic that is
/// correctly rounded, for integers, comparisons and data movement; false for transcendental
/// functions and for float sums, whose order is the backend's choice.
[[nodiscard]] bool is_exact(const Op& op, std::span<const Type> operands);

/// Does every value of `from` survive a cast to `to`?
[[nodiscard]] bool cast_loses_nothing(DType from, DType to);
/// Is casting `from` over `middle` to `to` the same as casting at once?
[[nodiscard]] bool cast_may_skip(DType from, DType middle, DType to);

}  // namespace ricci
