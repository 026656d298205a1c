// Sizes and places in memory that start on a cache line.
#pragma once

#include <cstdint>

namespace ricci {

inline constexpr std::int64_t CacheLine = 64;

/// The next multiple of a cache line.
[[nodiscard]] constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + CacheLine - 1) / CacheLine * CacheLine;
}

}  // namespace ricci
