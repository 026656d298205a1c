// Workloads of dense linear algebra.
#pragma once

#include "workloads/workload.h"

namespace ricci::bench {

[[nodiscard]] Workload eigh_values_and_vectors(Scale scale);
[[nodiscard]] Workload svd_values_and_vectors(Scale scale);

}  // namespace ricci::bench
