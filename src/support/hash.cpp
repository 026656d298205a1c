#include "ricci/support/hash.h"

#include <cstring>

namespace ricci {

Hasher& Hasher::add(std::span<const std::byte> bytes) noexcept {
  add(static_cast<std::uint64_t>(bytes.size()));
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    add(word);
  }
  if (i < bytes.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, bytes.size() - i);
    add(word);
  }
  return *this;
}

}  // namespace ricci
