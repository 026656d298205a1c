// Long and deeply nested text from few bytes: pairs of a piece and how often it is repeated, behind
// a byte that says how far repeats may go. Long texts take long, so a fuzzer makes most of them
// short: of the bytes that ask for long text one in 64 get it, and one in 4096 very long text, as
// chance has it; otherwise all that descends from one of them would be long.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ricci/support/hash.h"

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

/// How long a text may become, and how often a piece is repeated at most.
struct ShapeSize {
  std::size_t text;
  std::size_t repeats;
};
inline constexpr ShapeSize ShortShape = {std::size_t{1} << 9, 128};
inline constexpr ShapeSize LongShape = {std::size_t{1} << 14, 20'000};
inline constexpr ShapeSize LongestShape = {std::size_t{1} << 17, 20'000};

/// What a fuzzer's bytes get.
inline ShapeSize shape_size(std::span<const std::uint8_t> data) {
  if (data.empty() || data[0] != LongMark) return ShortShape;
  const std::uint64_t chance = Hasher().add(std::as_bytes(data)).value();
  if (chance % 4096 == 0) return LongestShape;
  return chance % 64 == 0 ? LongShape : ShortShape;
}

/// Small counts are meant as they are; the upper half of a byte reaches up to `most`.
inline std::size_t repeats(std::uint8_t byte, std::size_t most) {
  constexpr std::size_t Small = 128;
  if (byte < Small) return byte;
  return (byte - Small + 1) * most / Small;
}

inline std::string text_of_shapes(std::span<const std::uint8_t> data, ShapeSize most) {
  std::string text;
  std::size_t number = 0;
  for (std::size_t at = 1; at + 1 < data.size(); at += 2) {
    const std::string_view piece = TextPieces[data[at] % TextPieces.size()];
    for (std::size_t i = repeats(data[at + 1], most.repeats); i > 0; --i) {
      const std::string digits = std::to_string(number++);
      for (const char c : piece) c == '#' ? void(text += digits) : void(text += c);
      if (text.size() > most.text) return text;
    }
  }
  return text;
}

}  // namespace ricci::testing
