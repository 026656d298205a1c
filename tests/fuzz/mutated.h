// Bytes changed at random from a seed: what a fuzzer does, for tests that run without one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "property/random.h"

namespace ricci::testing {

/// A few changes of the kinds that matter to readers of sizes and offsets.
inline std::vector<std::byte> mutated(std::vector<std::byte> bytes, Rng& rng) {
  constexpr std::array<std::uint64_t, 10> OddNumbers = {
      0, 1, 2, 3, 7, 64, 0x7FFFFFFF, 0xFFFFFFFF, ~std::uint64_t{0}, std::uint64_t{1} << 62};
  for (std::size_t n = rng.below(4) + 1; n > 0 && !bytes.empty(); --n) {
    const std::size_t at = rng.below(bytes.size());
    const std::size_t size = std::min<std::size_t>(bytes.size() - at, rng.below(16) + 1);
    switch (rng.below(7)) {
      case 0: bytes[at] ^= static_cast<std::byte>(1U << rng.below(8)); break;
      case 1: bytes[at] = static_cast<std::byte>(rng.next()); break;
      case 2: {  // a number, where numbers are likely to lie or anywhere
        const std::uint64_t v = OddNumbers[rng.below(OddNumbers.size())];
        const std::size_t width =
            std::min<std::size_t>(std::size_t{1} << rng.below(4), bytes.size() - at);
        std::memcpy(bytes.data() + at, &v, width);
        break;
      }
      case 3:
        bytes[at] = static_cast<std::byte>(std::to_integer<unsigned>(bytes[at]) + rng.below(5) - 2);
        break;
      case 4:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
        break;
      case 5: {
        const std::vector<std::byte> copy(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                          bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(rng.below(bytes.size())),
                     copy.begin(), copy.end());
        break;
      }
      default: {  // the same bytes in another place
        const std::size_t to = rng.below(bytes.size());
        std::memmove(bytes.data() + to, bytes.data() + at,
                     std::min(size, bytes.size() - std::max(to, at)));
      }
    }
  }
  return bytes;
}

}  // namespace ricci::testing
