#!/usr/bin/env python3
"""Writes src/data/unicode_classes.cpp: which characters are letters and numbers, by the Unicode that
this Python knows."""

import sys
import unicodedata
from pathlib import Path


def ranges(holds):
    out = []
    for code in range(sys.maxunicode + 1):
        if not holds(unicodedata.category(chr(code))):
            continue
        if out and out[-1][1] == code - 1:
            out[-1][1] = code
        else:
            out.append([code, code])
    return out


def table(name, rows):
    lines, line = [], ""
    for first, last in rows:
        entry = f"{{0x{first:X}, 0x{last:X}}}, "
        if len(line) + len(entry) > 96:
            lines.append("    " + line.rstrip())
            line = ""
        line += entry
    lines.append("    " + line.rstrip().rstrip(","))
    body = "\n".join(lines)
    return f"constexpr CodeRange {name}[] = {{\n{body}}};\n"


def main():
    text = f"""// Made by scripts/unicode_classes.py of Unicode {unicodedata.unidata_version}.
#include "data/unicode_classes.h"

#include <algorithm>
#include <span>

namespace ricci {{
namespace {{

struct CodeRange {{
  char32_t first, last;
}};

// clang-format off
{table("Letters", ranges(lambda c: c[0] == "L"))}
{table("Numbers", ranges(lambda c: c[0] == "N"))}// clang-format on

bool is_in(std::span<const CodeRange> ranges, char32_t code) noexcept {{
  const auto it = std::ranges::lower_bound(ranges, code, {{}}, &CodeRange::last);
  return it != ranges.end() && it->first <= code;
}}

}}  // namespace

bool is_letter(char32_t code) noexcept {{ return is_in(Letters, code); }}
bool is_number(char32_t code) noexcept {{ return is_in(Numbers, code); }}

bool is_space(char32_t code) noexcept {{
  return (code >= 0x9 && code <= 0xD) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}}

}}  // namespace ricci
"""
    Path(__file__).parent.parent.joinpath("src/data/unicode_classes.cpp").write_text(text)


if __name__ == "__main__":
    main()
