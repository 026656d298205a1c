#include "ricci/support/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace ricci {
namespace {

constexpr std::uint64_t QuietNan64 = 0x7FF8000000000000ULL;
constexpr std::uint32_t QuietNan32 = 0x7FC00000U;
constexpr std::size_t LongestWord = 64;       // longer words are not typing slips
constexpr std::size_t MostCompared = 10'000;  // words a slip is compared with

template <class F>
std::string print_finite(F v) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v).ptr;
  std::string s(buffer.data(), end);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Bytes of the character at the front of `s`; 0 when it is malformed. Overlong forms, surrogates
// and what lies beyond U+10FFFF are malformed.
std::size_t utf8_length(std::string_view s) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || s.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool beyond = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || beyond ? 0 : length;
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// Insertions, deletions, replacements and exchanges of neighbours that turn one word into another.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string print_f64(double v) {
  const auto bits = std::bit_cast<std::uint64_t>(v);
  if (std::isnan(v)) return bits == QuietNan64 ? "nan" : fmt::format("nan(0x{:x})", bits);
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return print_finite(v);
}

std::string print_f32(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  if (std::isnan(v)) return bits == QuietNan32 ? "nan" : fmt::format("nan(0x{:x})", bits);
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  return print_finite(v);
}

std::size_t valid_utf8_prefix(std::string_view s) noexcept {
  std::size_t at = 0;
  while (at < s.size()) {
    const std::size_t length = utf8_length(s.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

std::string shortened(std::string_view s, std::size_t most_bytes) {
  if (s.size() <= most_bytes) return std::string(s);
  return std::string(s.substr(0, valid_utf8_prefix(s.substr(0, most_bytes)))) + "…";
}

std::string quote(std::string_view s) {
  std::string out = "\"";
  std::size_t well_formed = valid_utf8_prefix(s);
  for (std::size_t i = 0; i < s.size(); ++i) {
    const char c = s[i];
    if (i == well_formed) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      well_formed = i + 1 + valid_utf8_prefix(s.substr(i + 1));
      continue;
    }
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    out += digits[std::to_integer<std::size_t>(b) >> 4];
    out += digits[std::to_integer<std::size_t>(b) & 15];
  }
  return out;
}

std::optional<std::vector<std::byte>> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::vector<std::byte> out;
  out.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = hex_digit(digits[i]);
    const int low = hex_digit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return out;
}

bool is_identifier(std::string_view s) noexcept {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (s.empty() || !letter(s[0])) return false;
  return std::ranges::all_of(s, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > LongestWord) return std::nullopt;
  const auto length_gap = [&](const std::string& s) {
    return s.size() > word.size() ? s.size() - word.size() : word.size() - s.size();
  };
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates.first(std::min(candidates.size(), MostCompared))) {
    if (length_gap(candidate) > best_distance) continue;  // the distance is at least as large
    const std::size_t d = edit_distance(lower(word), lower(candidate));
    if (d >= std::max<std::size_t>(word.size(), 1) && d != 0) continue;  // nothing in common
    const bool nearer = d < best_distance ||
                        (best && d == best_distance && length_gap(candidate) < length_gap(*best));
    if (nearer) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

}  // namespace ricci
