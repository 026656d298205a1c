// How much memory there is, for limits that depend on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ricci {

/// Bytes of memory of this machine, or of the container the process is in.
[[nodiscard]] std::int64_t machine_memory();

/// Bytes that the control groups of this process allow it, the least of those it is nested in, of
/// version 1 and 2; more than any machine has where nothing is limited. `root` is where /proc and
/// /sys lie.
[[nodiscard]] std::int64_t container_memory(const std::string& root);

/// UserError(out_of_memory) when `count` things of so many bytes are more than that;
/// UserError(attr) when it is negative. For lists that are as long as somebody says: systems hand
/// out more memory than there is, and end the process later.
void require_memory(std::int64_t count, std::int64_t bytes_each, std::string_view what);

}  // namespace ricci
