// Kinds of characters, as Unicode has them.
#pragma once

namespace ricci {

[[nodiscard]] bool is_letter(char32_t code) noexcept;  ///< \p{L}
[[nodiscard]] bool is_number(char32_t code) noexcept;  ///< \p{N}
[[nodiscard]] bool is_space(char32_t code) noexcept;   ///< \s

}  // namespace ricci
