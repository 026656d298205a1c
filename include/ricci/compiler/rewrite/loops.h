// Passes that take work out of loops where all steps' work makes one large piece.
#pragma once

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Makes one product of many: of a scan's products with rows it is given, or rows it only stacks,
/// and of those a carry sums up.
///   x_t·W, for a row x_t and a W that is the same in every step: X·W before the scan
///   y_t = v_t·W, which no step reads: Y = V·W behind it, V the stacked v_t
///   c ← c + a_t·b_t, where no step reads c: c + [a_0 a_1 …]·[b_0; b_1; …] behind it. Sums along
///   axes, transposes and reshapes of products, and sums of these go with it.
/// Rows that a scan would have to stack for this must not take more than a few times the memory of
/// those it reads and writes anyway. Sums are taken in another order: results may differ by
/// rounding.
///   Before: any well-formed graph.
///   After: no scan of known sizes has such a product left.
[[nodiscard]] PassResult join_products(const Graph& graph);

}  // namespace ricci
