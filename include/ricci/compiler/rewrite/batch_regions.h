// Passes that find one function applied to slices of a batch and make one op of it.
#pragma once

#include "ricci/compiler/rewrite/pass.h"

namespace ricci {

/// Where a concat along axis 0 joins the same unary function of axis-0 slices of one value, makes
/// each application a region of one step.
///   Before: any well-formed graph.
///   After: values are unchanged, except that f16 and bf16 are rounded as regions round.
[[nodiscard]] PassResult mark_batch_slice_regions(const Graph& graph);

/// Where a concat along axis 0 joins regions with the same chain, each over one axis-0 slice of one
/// value, with the same values as other operands, and read by nothing else, puts a batch region in
/// the place of the concat. Its planes are the slices in the order of the concat.
///   Before: any well-formed graph; `mark_batch_slice_regions` makes such regions.
///   After: the regions that were joined are dead.
[[nodiscard]] PassResult fuse_batch_preprocess(const Graph& graph);

}  // namespace ricci
