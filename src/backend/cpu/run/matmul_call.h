#pragma once

#include <memory>

#include "backend/cpu/run/call_kernel.h"

namespace ricci::cpu {

/// A matrix product as a plan for its sizes and strides.
[[nodiscard]] std::unique_ptr<CallKernel> make_matmul_call(const loop::MatrixProduct& product,
                                                           const CallStep& step,
                                                           const AttachedKernels& attached,
                                                           const SameBuffers& same);

}  // namespace ricci::cpu
