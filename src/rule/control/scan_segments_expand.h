// The gradient of a scan that kept some of its carries, a segment at a time.
#pragma once

#include <optional>
#include <vector>

#include "ricci/compiler/rule/expand.h"
#include "ricci/op/control.h"

namespace ricci::rule {

/// A scan over the segments between kept carries, the last one first; each recomputes its own
/// carries and takes its own steps back, so that no more than one segment's carries are there at a
/// time, also when it is differentiated again. Nothing when all carries are kept, when the
/// length is not known, or when the sum over steps of a bcast's cotangent would be rounded for
/// each.
[[nodiscard]] std::optional<std::vector<Value>> expand_by_segments(const op::ScanBackward& op,
                                                                   const ExpandContext& c);

}  // namespace ricci::rule
