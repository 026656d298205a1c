#!/usr/bin/env python3
"""Rejects words that do not belong in the tree: notes left to do, paths of one
machine, using-directives in headers, and in the library variables of an environment
that may be somebody else's."""

import re
import subprocess
import sys
from pathlib import Path

HEADER_SUFFIXES = {".h", ".def"}
# Each pattern is split so that it does not match this file.
EVERYWHERE = [
    (re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b"), "a note left to do"),
    (re.compile(r"(?<![\w.~/-])/(work|root|home)\b"), "a path of one machine"),
]
IN_LIBRARY = [
    (re.compile(r"(?<!\w)get" r"env\("), "environment_variable (support/environment.h) is asked"),
    (re.compile(r"\b(?:strto(?:d|f|ld)|sto(?:d|f|ld)|is(?:alpha|alnum|space|upper|lower)|to(?:upper|lower))\("),
     "the process's locale decides what this does: std::from_chars, or strtod_l"),
]
IN_HEADERS = [(re.compile(r"\busing\s+name" r"space\b"), "a using-directive in a header")]


def repository_files():
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True
    )
    return [Path(name) for name in listing.stdout.splitlines() if Path(name).is_file()]


def check_file(path):
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []  # binary seeds of the fuzz corpus
    rules = EVERYWHERE + (IN_HEADERS if path.suffix in HEADER_SUFFIXES else [])
    rules = rules + (IN_LIBRARY if path.parts[0] in ("src", "tools") else [])
    return [
        f"{path}:{number}: {what}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), 1)
        for pattern, what in rules
        if pattern.search(line)
    ]


def main():
    faults = [fault for path in repository_files() for fault in check_file(path)]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
