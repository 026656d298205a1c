// Fresh keys for random nodes: each above every key there is so far. The largest 64-bit integer is
// never given out, so that counting on from a key cannot overflow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ricci/support/error.h"

namespace ricci {

/// The next fresh key once `taken` is in use.
[[nodiscard]] constexpr std::int64_t next_key_after(std::int64_t next, std::int64_t taken) {
  return taken == std::numeric_limits<std::int64_t>::max() ? next : std::max(next, taken + 1);
}

/// Hands out `next` and counts on; UserError(attr) when there is none left.
[[nodiscard]] inline std::int64_t take_key(std::int64_t& next) {
  if (next == std::numeric_limits<std::int64_t>::max()) {
    throw UserError(ErrorCode::Attr, "no random key is left in this graph",
                    "give random nodes keys below the largest 64-bit integer");
  }
  return next++;
}

}  // namespace ricci
