// Long and deeply nested text from few bytes: pairs of a piece and how often it is repeated, behind
// a byte that says how far repeats go. Long texts take long, so most are short.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ricci::testing {

// A '#' becomes a number that counts up, so that repeated pieces can define and use new names.
inline constexpr std::array<std::string_view, 64> TextPieces = {
    "graph @g# {\n",
    "%x# = input \"x#\" : f32[2]\n",
    "%p# = param \"p#\" : f32[n, 2]\n",
    "%y = input \"y\" : f32[2]\n",
    "%z# = neg %y\n",
    "%z# = add %y, %y {}\n",
    "return %y }\n",
    "return }\n",
    "%c# = constant ",
    "%s# = scan %y {length = 1} body {\n",
    "%y = input \"c\" : f32[2]\n",
    "return %y } : f32[2]\n",
    "%i# = if %b, %y then {\n",
    "return %y } else {\n",
    "%b = input \"b\" : bool[]\n",
    "%k# = concat %y, %y",
    ", %y",
    " {axis = 0}\n",
    "%r# = reshape %y {new_shape = [",
    "%e# = expand %y {shape = [",
    "1, ",
    "2",
    "n",
    "n# + ",
    "n*",
    "2*",
    " - n",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "nan(",
    "nan(0x7fc00001)",
    "splat ",
    "hex \"",
    "00",
    "\"",
    "\\x00",
    "\\",
    " : f32[",
    " : f32[2]\n",
    " : f32[]\n",
    ": ",
    ", ",
    "1.5e3",
    "-",
    "9",
    "0",
    "%",
    "@",
    "=",
    "_, ",
    "_ = ",
    "a# = 1, ",
    "axis = 0",
    "// comment\n",
    "\n",
    " ",
    "\xC3\xA4",
    "\xFF",
    "inf",
    "ricci 1\n",
};
/// Rare among the bytes a fuzzer tries.
inline constexpr std::uint8_t LongMark = 0xA5;
inline constexpr std::size_t FewRepeats = 128;
inline constexpr std::size_t MostRepeats = 20'000;
inline constexpr std::size_t FewShapeText = std::size_t{1} << 11;
inline constexpr std::size_t MostShapeText = std::size_t{1} << 17;

/// Small counts are meant as they are; the upper half of a byte reaches up to `most`.
inline std::size_t repeats(std::uint8_t byte, std::size_t most) {
  constexpr std::size_t Small = 128;
  if (byte < Small) return byte;
  return (byte - Small + 1) * most / Small;
}

inline std::string text_of_shapes(std::span<const std::uint8_t> data) {
  std::string text;
  if (data.empty()) return text;
  const bool is_long = data[0] == LongMark;
  const std::size_t most = is_long ? MostRepeats : FewRepeats;
  const std::size_t longest = is_long ? MostShapeText : FewShapeText;
  std::size_t number = 0;
  for (std::size_t at = 1; at + 1 < data.size(); at += 2) {
    const std::string_view piece = TextPieces[data[at] % TextPieces.size()];
    for (std::size_t i = repeats(data[at + 1], most); i > 0; --i) {
      const std::string digits = std::to_string(number++);
      for (const char c : piece) c == '#' ? void(text += digits) : void(text += c);
      if (text.size() > longest) return text;
    }
  }
  return text;
}

}  // namespace ricci::testing
