#pragma once

#include <memory>

#include "backend/cpu/run/call_kernel.h"

namespace ricci::cpu {

/// A call of `matmul` as a plan for its shapes and strides.
[[nodiscard]] std::unique_ptr<CallKernel> make_matmul_call(const CallStep& step,
                                                           const AttachedKernels& attached);

}  // namespace ricci::cpu
