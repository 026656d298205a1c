// How a text is taken apart before pairs are joined: by one of the patterns that published models
// have.
#pragma once

#include <cstddef>
#include <cstdint>
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

enum class WordPattern : std::uint8_t {
  None,  ///< a text is one word
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  Gpt2,
  /// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
  /// \s*[\r\n]+|\s+(?!\S)|\s+
  ThreeDigits,
  /// The same with \p{N} alone.
  OneDigit
};

/// Bytes of the first word of a text that is not empty.
[[nodiscard]] std::size_t first_word(std::string_view text, WordPattern pattern) noexcept;

}  // namespace ricci
