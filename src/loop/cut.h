// Work cut in parts of nearly equal size. Where the accumulated rows of a kernel are cut decides
// the bits of its result, so all devices cut them here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ricci/compiler/loop/kernel.h"

namespace ricci::loop {

struct Part {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// [0, n) cut in `parts`, part number p.
[[nodiscard]] inline Part cut(std::int64_t n, std::int64_t parts, std::int64_t p) {
  return {n / parts * p + std::min(p, n % parts), n / parts * (p + 1) + std::min(p + 1, n % parts)};
}

/// The accumulated rows that a chunk of a kernel combines.
[[nodiscard]] inline Part chunk_rows(const Kernel& kernel, std::int64_t chunk) {
  return cut(kernel.accumulated_rows(), kernel.chunks, chunk);
}

}  // namespace ricci::loop
