// Opening and reading what may keep one waiting: a pipe without a writer, a terminal. Who waits
// obeys the stop button, which a blocked call of the system would not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
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

/// Looks at the first bytes of a file, so that one of another kind is not read to its end, which a
/// device need not have: throws what is to be thrown.
using FrontCheck = std::function<void(std::span<const std::byte>)>;
inline constexpr std::size_t FrontBytes = 16;  ///< it is given, unless the file has fewer

/// As `read_file`, which opens `path` first; here it stands in messages only. A pipe that is opened
/// twice waits for a second writer.
[[nodiscard]] std::vector<std::byte> read_open(const Descriptor& file, const std::string& path,
                                               std::int64_t max_bytes,
                                               const FrontCheck& front = {});

}  // namespace ricci
