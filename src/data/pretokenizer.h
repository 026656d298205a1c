// How a text is taken apart before pairs are joined: GPT-2's pattern
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#pragma once

#include <cstddef>
#include <string_view>

namespace ricci {

/// A character of UTF-8, or a byte that is none: which is no letter, number or space.
struct CodePoint {
  char32_t code = 0;
  std::size_t size = 0;  ///< bytes; 0 at the end of the text
};
[[nodiscard]] CodePoint code_point_at(std::string_view text, std::size_t at) noexcept;
/// The one that ends before `end`.
[[nodiscard]] CodePoint code_point_before(std::string_view text, std::size_t end) noexcept;

/// Bytes of the first word of a text that is not empty.
[[nodiscard]] std::size_t first_word(std::string_view text) noexcept;

}  // namespace ricci
