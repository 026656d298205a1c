// How much memory there is, for limits that depend on it.
#pragma once

#include <cstdint>

namespace ricci {

/// Bytes of memory of this machine, or of the container the process is in.
[[nodiscard]] std::int64_t machine_memory();

}  // namespace ricci
