// Opening and reading what may keep one waiting: a pipe without a writer, a terminal. Who waits
// obeys the stop button, which a blocked call of the system would not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/descriptor.h"

namespace ricci {

/// Open for reading, at once, even a pipe nobody writes to yet. Closed, with errno set, when it
/// cannot be opened.
[[nodiscard]] Descriptor open_to_read(const std::string& path) noexcept;
/// Open for writing where there is something already; waits for a pipe to have a reader. Closed,
/// with errno set, when it cannot be opened.
[[nodiscard]] Descriptor open_to_write(const std::string& path);

/// As `read_file`, which opens `path` first; here it stands in messages only. A pipe that is opened
/// twice waits for a second writer.
[[nodiscard]] std::vector<std::byte> read_open(const Descriptor& file, const std::string& path,
                                               std::int64_t max_bytes);

}  // namespace ricci
