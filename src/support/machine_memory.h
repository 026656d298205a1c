// How much memory there is, for limits that depend on it.
#pragma once

#include <cstdint>
#include <string_view>

namespace ricci {

/// Bytes of memory of this machine, or of the container the process is in.
[[nodiscard]] std::int64_t machine_memory();

/// UserError(out_of_memory) when `count` things of so many bytes are more than that;
/// UserError(attr) when it is negative. For lists that are as long as somebody says: systems hand
/// out more memory than there is, and end the process later.
void require_memory(std::int64_t count, std::int64_t bytes_each, std::string_view what);

}  // namespace ricci
