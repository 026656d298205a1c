// Settings of convolutions and pools as people write them: {.padding = 1}, {.stride = {2, 1}}.
#pragma once

#include <cstdint>
#include <optional>

namespace ricci {

/// One number for height and width, or two: `2`, `{2, 1}`.
struct Pair {
  std::int64_t height = 0;
  std::int64_t width = 0;
  constexpr Pair(int both) : height(both), width(both) {}                  // NOLINT
  constexpr Pair(std::int64_t both) : height(both), width(both) {}         // NOLINT
  constexpr Pair(std::int64_t h, std::int64_t w) : height(h), width(w) {}  // NOLINT
};

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  std::int64_t groups = 1;
};

struct PoolOptions {
  std::optional<Pair> stride = {};  ///< absent: the window
  Pair padding = 0;
};

}  // namespace ricci
