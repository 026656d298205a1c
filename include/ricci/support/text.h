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

/// Adds double quotes and escapes `"`, `\`, newline, tab, control characters, and bytes that are
/// not UTF-8.
[[nodiscard]] std::string quote(std::string_view s);

/// How many bytes at the front are well-formed UTF-8; all of them when `s` is.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view s) noexcept;

/// A name as messages show it: cut with `…` when it is long, whole characters only.
[[nodiscard]] std::string shortened(std::string_view s, std::size_t most_bytes = 80);

[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);
/// Nothing when a character is not a hex digit or the count is odd.
[[nodiscard]] std::optional<std::vector<std::byte>> from_hex(std::string_view digits);

/// Letters, digits and underscores, not starting with a digit.
[[nodiscard]] bool is_identifier(std::string_view s) noexcept;

/// `a, b, c`
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);

/// The candidate nearest to `word` in edit distance, when it is near enough to be a typing slip.
/// Long words and long candidates are none, and of very many candidates only the first are looked
/// at.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string> candidates);

}  // namespace ricci
