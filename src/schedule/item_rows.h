// The rows that items would run with if they were alone.
#pragma once

#include <cstdint>

#include "schedule/fuse.h"

namespace ricci::schedule {

/// The row a reduction would choose for itself: its last axes that share a fate.
[[nodiscard]] std::int64_t natural_row(const Item& item, const KernelShape& shape);
/// Elements at the end that every read walks as if they were one axis, as kernels join them.
[[nodiscard]] std::int64_t run_of(const Item& item);

}  // namespace ricci::schedule
