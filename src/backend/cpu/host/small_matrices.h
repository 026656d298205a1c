// Batches of small real matrices, as many at a time as a vector has lanes: what a library would
// spend on being called is more than the work. Computed in f64, as all small matrices are.
#pragma once

#include "backend/cpu/run/host_call.h"

namespace ricci::cpu {

/// A call of a role that has such a kernel. False: it is not about such a batch, and nothing is
/// done.
[[nodiscard]] bool factor_in_lanes(const HostArguments& call);
[[nodiscard]] bool solve_in_lanes(const HostArguments& call);

[[noreturn]] void fail_singular(const HostArguments& call, std::int64_t system, std::int64_t row);

}  // namespace ricci::cpu
