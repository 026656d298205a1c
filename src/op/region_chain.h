// What regions share: the op a step stands for, and the types of a chain.
#pragma once

#include <span>
#include <vector>

#include "ricci/op/infer.h"
#include "ricci/op/region.h"

namespace ricci {

/// The primitive a step stands for.
[[nodiscard]] Op step_op(const RegionStep& step);
[[nodiscard]] inline Op step_op(const TransformStep& step) { return step.op; }

/// The steps that are results, in order.
[[nodiscard]] std::vector<std::int64_t> region_outputs(const op::ElementwiseRegion& op);

/// One type per step. Checks c1 to c4, which every region op declares alike.
[[nodiscard]] std::vector<Type> infer_chain(const std::vector<RegionStep>& chain,
                                            const InferContext& in, std::span<const Type> inputs);

}  // namespace ricci
