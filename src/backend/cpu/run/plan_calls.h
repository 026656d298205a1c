// Calls of convolution, pooling and attention as plans for their shapes.
#pragma once

#include <memory>

#include "backend/cpu/run/call_kernel.h"

namespace ricci::cpu {

/// Does a plan serve this node?
[[nodiscard]] bool has_plan(const Graph& graph, const Node& node);
/// The plan's call; null when there is none.
[[nodiscard]] std::unique_ptr<CallKernel> make_plan_call(const CallStep& step,
                                                         const AttachedKernels& attached);

}  // namespace ricci::cpu
