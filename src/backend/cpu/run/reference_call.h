// The kernel every op has: the reference's.
#pragma once

#include <memory>

#include "backend/cpu/run/call_kernel.h"

namespace ricci::cpu {

/// Slow. Ops registered at run time are looked up in the program's registry, which must outlive the
/// kernel.
[[nodiscard]] std::unique_ptr<CallKernel> make_reference_call(const Program& program,
                                                              const CallStep& step);

}  // namespace ricci::cpu
