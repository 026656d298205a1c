#!/usr/bin/env python3
"""Writes src/data/unicode_composition.cpp: what characters are composed of, and which marks change
places, by the Unicode that this Python knows."""

import sys
import unicodedata
from pathlib import Path


def rows_of(entries):
    lines, line = [], ""
    for entry in entries:
        text = "{" + ", ".join(f"0x{x:X}" for x in entry) + "}, "
        if len(line) + len(text) > 116:
            lines.append("    " + line.rstrip())
            line = ""
        line += text
    lines.append("    " + line.rstrip().rstrip(","))
    return "\n".join(lines)


def decompositions():
    together, apart = [], []
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code))
        if not parts or parts.startswith("<"):
            continue
        first, second = ([int(p, 16) for p in parts.split()] + [0])[:2]
        same = unicodedata.normalize("NFC", chr(code)) == chr(code)
        (together if same else apart).append((code, first, second))
    return together, apart


def classes():
    out = []
    for code in range(sys.maxunicode + 1):
        kind = unicodedata.combining(chr(code))
        if kind == 0:
            continue
        if out and out[-1][1] == code - 1 and out[-1][2] == kind:
            out[-1][1] = code
        else:
            out.append([code, code, kind])
    return out


def main():
    together, apart = decompositions()
    text = f"""// Made by scripts/unicode_composition.py of Unicode {unicodedata.unidata_version}.
#include "data/unicode_composition.h"

namespace ricci {{
namespace {{

// clang-format off
constexpr Composition Together[] = {{
{rows_of(together)}}};

constexpr Composition Apart[] = {{
{rows_of(apart)}}};

constexpr MarkClass Marks[] = {{
{rows_of(classes())}}};
// clang-format on

}}  // namespace

std::span<const Composition> composed_characters() noexcept {{ return Together; }}
std::span<const Composition> characters_taken_apart() noexcept {{ return Apart; }}
std::span<const MarkClass> classes_of_marks() noexcept {{ return Marks; }}

}}  // namespace ricci
"""
    Path(__file__).parent.parent.joinpath("src/data/unicode_composition.cpp").write_text(text)


if __name__ == "__main__":
    main()
