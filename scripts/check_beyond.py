#!/usr/bin/env python3
"""Checks that the tests cite, in square brackets, every promise listed in tests/beyond.txt."""

import re
import sys
from pathlib import Path

LIST = Path("tests/beyond.txt")
CITATION = re.compile(r"\[([A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*)\]")
SUFFIXES = {".cpp", ".h", ".ric", ".py"}


def promises():
    """Pairs of an identifier and what it stands for, in the order of the list."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    entries = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    return [(identifier, text) for identifier, text in entries]


def cited():
    found = set()
    for path in LIST.parent.rglob("*"):
        if path.suffix in SUFFIXES:
            found.update(CITATION.findall(path.read_text(encoding="utf-8")))
    return found


def main():
    known = promises()
    names = [identifier for identifier, _ in known]
    faults = [f"{LIST}: '{name}' is listed twice" for name in set(names) if names.count(name) > 1]
    there = cited()
    faults += [f"no test cites [{name}]: {text}" for name, text in known if name not in there]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
