#include "data/pretokenizer.h"

#include <array>
#include <cstdint>

#include "data/unicode_classes.h"

namespace ricci {
namespace {

constexpr char32_t NoCharacter = 0xFFFFFFFF;

enum class CharKind : std::uint8_t { Letter, Number, Space, Other, End };

CharKind char_kind(CodePoint c) noexcept {
  if (c.size == 0) return CharKind::End;
  if (is_space(c.code)) return CharKind::Space;
  if (is_letter(c.code)) return CharKind::Letter;
  return is_number(c.code) ? CharKind::Number : CharKind::Other;
}

std::size_t end_of_run(std::string_view text, std::size_t at, CharKind kind) noexcept {
  for (;;) {
    const CodePoint c = code_point_at(text, at);
    if (char_kind(c) != kind) return at;
    at += c.size;
  }
}

constexpr std::array<std::string_view, 7> Endings = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

std::size_t contraction(std::string_view text) noexcept {
  for (const std::string_view e : Endings) {
    if (text.starts_with(e)) return e.size();
  }
  return 0;
}

// The same whatever the size of letters, the long s among them.
std::size_t contraction_of_any_size(std::string_view text) noexcept {
  constexpr char32_t LongS = 0x17F;
  for (const std::string_view e : Endings) {
    std::size_t at = 0;
    bool same = true;
    for (const char wanted : e) {
      const CodePoint c = code_point_at(text, at);
      const char32_t small = c.code >= U'A' && c.code <= U'Z' ? c.code - U'A' + U'a' : c.code;
      same = same && c.size > 0 && (small == LongS ? U's' : small) == static_cast<char32_t>(wanted);
      at += c.size;
    }
    if (same) return at;
  }
  return 0;
}

bool is_line_end(CodePoint c) noexcept {
  return c.size > 0 && (c.code == U'\r' || c.code == U'\n');
}

// All of it but the last one, which belongs to the word behind it; all at the end of a text.
std::size_t spaces(std::string_view text) noexcept {
  std::size_t at = 0;
  std::size_t last = 0;
  for (;;) {
    const CodePoint c = code_point_at(text, at);
    const CharKind kind = char_kind(c);
    if (kind == CharKind::End) return at;
    if (kind != CharKind::Space) return last > 0 ? last : at;
    last = at;
    at += c.size;
  }
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) noexcept {
  if (at >= text.size()) return {};
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  constexpr std::array<char32_t, 5> Least = {0, 0, 0x80, 0x800, 0x10000};
  char32_t code = first & (0xFFU >> (size + 1));
  bool good = first >= 0xC2 && first < 0xF5;
  for (std::size_t i = 1; i < size && good; ++i) {
    good = (byte(i) & 0xC0U) == 0x80U;
    code = code << 6U | (byte(i) & 0x3FU);
  }
  good = good && code >= Least[size] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  return good ? CodePoint{code, size} : CodePoint{NoCharacter, 1};
}

CodePoint code_point_before(std::string_view text, std::size_t end) noexcept {
  for (std::size_t size = 1; size <= 4 && size <= end; ++size) {
    const CodePoint c = code_point_at(text.substr(0, end), end - size);
    if (c.size == size && (size > 1 || c.code != NoCharacter)) return c;
  }
  return end == 0 ? CodePoint{} : CodePoint{NoCharacter, 1};
}

namespace {

std::size_t first_word_of_gpt2(std::string_view text) noexcept {
  if (const std::size_t size = contraction(text); size > 0) return size;
  const std::size_t start = text.starts_with(' ') ? 1 : 0;
  const CharKind kind = char_kind(code_point_at(text, start));
  if (kind != CharKind::Space && kind != CharKind::End) return end_of_run(text, start, kind);
  return spaces(text);
}

// \s*[\r\n]+: to behind the last end of a line among the spaces; 0 where there is none.
std::size_t spaces_to_line_end(std::string_view text) noexcept {
  std::size_t end = 0;
  for (std::size_t at = 0;;) {
    const CodePoint c = code_point_at(text, at);
    if (char_kind(c) != CharKind::Space) return end;
    at += c.size;
    if (is_line_end(c)) end = at;
  }
}

std::size_t first_word_by_lines(std::string_view text, std::size_t digits) noexcept {
  if (const std::size_t size = contraction_of_any_size(text); size > 0) return size;
  const CodePoint first = code_point_at(text, 0);
  const CharKind kind = char_kind(first);
  const bool leads = kind != CharKind::Letter && kind != CharKind::Number && !is_line_end(first);
  const std::size_t letters = leads ? first.size : 0;
  const std::size_t word = end_of_run(text, letters, CharKind::Letter);
  if (word > letters) return word;
  if (kind == CharKind::Number) {
    std::size_t at = 0;
    for (std::size_t n = 0; n < digits; ++n) {
      const CodePoint c = code_point_at(text, at);
      if (char_kind(c) != CharKind::Number) break;
      at += c.size;
    }
    return at;
  }
  const std::size_t start = text.starts_with(' ') ? 1 : 0;
  std::size_t end = end_of_run(text, start, CharKind::Other);
  if (end > start) {
    while (is_line_end(code_point_at(text, end))) ++end;
    return end;
  }
  if (const std::size_t size = spaces_to_line_end(text); size > 0) return size;
  return spaces(text);
}

}  // namespace

std::size_t first_word(std::string_view text, WordPattern pattern) noexcept {
  switch (pattern) {
    case WordPattern::None: break;
    case WordPattern::Gpt2: return first_word_of_gpt2(text);
    case WordPattern::ThreeDigits: return first_word_by_lines(text, 3);
    case WordPattern::OneDigit: return first_word_by_lines(text, 1);
  }
  return text.size();
}

}  // namespace ricci
