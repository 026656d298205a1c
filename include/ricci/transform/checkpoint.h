// Trading time for memory: parts of a graph whose inner values a gradient computes again.
//
//   Transformed c = checkpoint(graph, {.policy = CheckpointPolicy::Matmuls});
//   Transformed g = value_and_grad(c.graph, {"w"});       // keeps products only
#pragma once

#include <vector>

#include "ricci/build/control.h"
#include "ricci/transform/transformed.h"

namespace ricci {

/// The graph as one checkpoint between its inputs and params and its outputs. Values and gradients
/// stay what they were, bit for bit; but an op that a gradient takes apart (see the op reference)
/// is computed whole in the forward pass here, and in parts without the checkpoint, which may round
/// differently. UserError(name) when a name of the options is no value's.
[[nodiscard]] Transformed checkpoint(const Graph& graph, const CheckpointOptions& options = {});

/// The same for the part of the graph that computes `to` from `from`: nodes that lie on a path from
/// one of them to one of those. Values of the part that are used outside of it are results as well.
/// The cotangents of a value that is used inside and outside are added up inside first.
/// UserError(refused) when a value outside of it both depends on the part and is used by it.
[[nodiscard]] Transformed checkpoint(const Graph& graph, const std::vector<ValueRef>& from,
                                     const std::vector<ValueRef>& to,
                                     const CheckpointOptions& options = {});

}  // namespace ricci
