// The kernel every op has: the reference's.
#pragma once

#include <memory>

#include "backend/cpu/run/call_kernel.h"

namespace ricci::cpu {

/// Slow. Ops registered at run time are looked up in `registry`, which must outlive the kernel.
[[nodiscard]] std::unique_ptr<CallKernel> make_reference_call(const CallStep& step,
                                                              const Registry& registry);

}  // namespace ricci::cpu
