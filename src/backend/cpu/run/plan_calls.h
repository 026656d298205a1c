// Convolutions, pooling and attention as plans for their geometry.
#pragma once

#include <memory>

#include "backend/cpu/run/call_kernel.h"

namespace ricci::cpu {

/// The plan's call; null when there is none.
[[nodiscard]] std::unique_ptr<CallKernel> make_plan_call(const Program& program,
                                                         const CallStep& step,
                                                         const AttachedKernels& attached);

}  // namespace ricci::cpu
