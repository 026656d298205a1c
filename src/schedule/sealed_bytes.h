// Bytes with a head that says what they are, of which version, how long, and with a check sum: what
// was cut off, overwritten or made by another version is noticed before it is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ricci::schedule {

struct SealKind {
  std::array<char, 8> magic;
  std::uint64_t version;
};

[[nodiscard]] std::vector<std::byte> sealed(const SealKind& kind, std::span<const std::byte> body);
/// The body; UserError(file) when the bytes are not whole or of another kind or version.
[[nodiscard]] std::span<const std::byte> opened(const SealKind& kind,
                                                std::span<const std::byte> bytes);

}  // namespace ricci::schedule
