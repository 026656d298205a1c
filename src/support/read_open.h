// Reading what has been opened already: a pipe that is opened twice waits for a second writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/descriptor.h"

namespace ricci {

/// As `read_file`, which opens `path` first; here it stands in messages only.
[[nodiscard]] std::vector<std::byte> read_open(const Descriptor& file, const std::string& path,
                                               std::int64_t max_bytes);

}  // namespace ricci
