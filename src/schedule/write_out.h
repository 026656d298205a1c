// Loops as the scheduler hands them on: the plan a `scan` or `while` follows, and, where its body
// is made of what can be written out, the body as items over small arrays.
#pragma once

#include <optional>

#include "ricci/compiler/loop/written_loop.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/graph.h"

namespace ricci::schedule {

/// Nothing for nodes that are no loops. The node has static types.
[[nodiscard]] std::optional<loop::LoopPlan> loop_plan(const Node& node);

/// Nothing when a body has a loop or a call other than a plain matrix product, reads at places that
/// values give or beyond the edge of an array, draws numbers, has complex ones, running totals, or
/// instructions that can fault: a written-out loop has no way to.
[[nodiscard]] std::optional<loop::WrittenLoop> written_loop(const Node& node,
                                                            const loop::LoopPlan& plan,
                                                            const KernelShape& shape);

}  // namespace ricci::schedule
