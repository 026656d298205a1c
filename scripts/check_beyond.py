#!/usr/bin/env python3
"""Checks that the tests cite, in square brackets, every promise listed in tests/beyond.txt, each
where the list says: in a test or in the comment above it, in a table of cases, or in a file.
`--write` names for every promise the first place that cites it."""

import re
import sys
from pathlib import Path

from brackets import blank, end_of

LIST = Path("tests/beyond.txt")
CITATION = re.compile(r"\[([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*)\]")
TEST = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)
CASES = re.compile(r"^Cases cases\(const op::(\w+)\*\)", re.MULTILINE)
COMMENT_OR_BLANK = re.compile(r"(?:[ \t]*(?://[^\n]*)?\n)*")
SUFFIXES = {".cpp", ".h", ".ric", ".py"}
LATER = "later"


def promises():
    """An identifier, what it stands for and where that is shown, in the order of the list."""
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            promise, _, place = line.partition(" | ")
            identifier, text = promise.split(maxsplit=1)
            yield identifier, text, place


def named_blocks(text):
    """Where tests and tables of cases begin and end, and what they are called."""
    code = blank(text)
    for pattern, name in ((TEST, "{}.{}"), (CASES, "cases of {}")):
        for match in pattern.finditer(code):
            start = code.find("{", match.end())
            yield match.start(), end_of(code, start), name.format(*match.groups())


def citations(path):
    """Identifiers in brackets, and what each stands in or, as a comment, above."""
    text = path.read_text(encoding="utf-8")
    found = list(CITATION.finditer(text))
    blocks = list(named_blocks(text)) if found and path.suffix == ".cpp" else []
    for match in found:
        line_end = text.find("\n", match.end()) + 1
        below = COMMENT_OR_BLANK.match(text, line_end).end()
        names = [name for start, end, name in blocks
                 if start <= match.start() < end or start == below]
        yield match[1], names[0] if names else str(path)


def cited():
    """The places that cite an identifier, tests and tables first."""
    places = {}
    for path in sorted(LIST.parent.rglob("*")):
        if path.suffix in SUFFIXES:
            for identifier, place in citations(path):
                places.setdefault(identifier, []).append(place)
    for of_one in places.values():
        of_one.sort(key=lambda place: "/" in place)
    return places


def faults_of(identifier, text, place, there):
    if place == LATER:
        if there:
            yield f"{LIST}: [{identifier}] is later work, but {there[0]} shows it"
    elif not there:
        yield f"no test cites [{identifier}]: {text}"
    elif place not in there:
        yield f"{LIST}: [{identifier}] is not cited by '{place}', but by {', '.join(there)}"


def write(known, there):
    names = {identifier: place if place in there.get(identifier, [LATER]) else there[identifier][0]
             for identifier, _, place in known}
    lines = []
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            promise = line.partition(" | ")[0].rstrip()
            line = f"{promise} | {names[promise.split(maxsplit=1)[0]]}"
        lines.append(line)
    LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    known = list(promises())
    there = cited()
    if "--write" in sys.argv[1:]:
        write(known, there)
        return 0
    names = [identifier for identifier, _, _ in known]
    faults = [f"{LIST}: '{name}' is listed twice" for name in set(names) if names.count(name) > 1]
    for identifier, text, place in known:
        faults += faults_of(identifier, text, place, there.get(identifier, []))
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
