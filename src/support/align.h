// Sizes and places in memory that start on a cache line.
#pragma once

#include <cstdint>

namespace ricci {

inline constexpr std::int64_t CacheLine = 64;

/// The next multiple of an alignment, which is a cache line's where none is named.
[[nodiscard]] constexpr std::int64_t aligned(std::int64_t bytes,
                                             std::int64_t alignment = CacheLine) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace ricci
