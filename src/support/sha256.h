// SHA-256 (FIPS 180-4), for telling whether bytes are those that were meant, whoever wrote them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ricci {

[[nodiscard]] std::array<std::byte, 32> sha256(std::span<const std::byte> bytes) noexcept;
/// The same of a text, as 64 hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view text);

}  // namespace ricci
