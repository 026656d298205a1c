// Small text helpers used by printers and readers: exact number formatting, quoting, hex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

/// The shortest decimal that reads back to the same f64; always has a '.', an 'e', or is
/// `inf`, `-inf`, `nan`, or `nan(0x…)` for a NaN that is not the default quiet one.
[[nodiscard]] std::string print_f64(double v);
/// The same for f32: reads back to the same f32.
[[nodiscard]] std::string print_f32(float v);

/// Adds double quotes and escapes `"`, `\`, newline, tab and control characters.
[[nodiscard]] std::string quote(std::string_view s);

[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// Nothing when a character is not a hex digit or the count is odd.
[[nodiscard]] std::optional<std::vector<std::byte>> from_hex(std::string_view digits);

/// Letters, digits and underscores, not starting with a digit.
[[nodiscard]] bool is_identifier(std::string_view s) noexcept;

/// `a, b, c`
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);

/// The candidate nearest to `word` in edit distance, when it is near enough to be a typing slip.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string> candidates);

}  // namespace ricci
