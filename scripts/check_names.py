#!/usr/bin/env python3
"""Rejects two types of one name: the linker keeps one constructor and one destructor of a name, so a
program with both destroys one type as the other, and no compiler sees it. A type that one source uses
belongs in its unnamed namespace."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

FOLDERS = ("include", "src", "tools", "tests")
# Programs of their own, which are linked with none of the others.
APART = ("tests/compile_fail/", "tests/gdb/", "tests/install/")
NAMESPACE = re.compile(r"(?:inline )?namespace(?: ([\w:]+))? \{$")
END = re.compile(r"\}  // namespace")
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|union|enum(?: class)?) (?:alignas\(.*?\) )?"
                  r"(?:\[\[\w+\]\] )?(\w+)(?: final)?(?: : .*)?\s*\{")


def types_of(path):
    """Qualified names of the types that are defined in namespaces with names, and the lines."""
    inside = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        opened = NAMESPACE.match(line)
        if opened:
            inside.append(opened[1])
        elif END.match(line) and inside:
            inside.pop()
        elif inside and None not in inside:
            found = TYPE.match(line)
            if found:
                yield "::".join([*inside, found[1]]), number


def main():
    listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *FOLDERS],
                             check=True, capture_output=True, text=True)
    paths = [Path(name) for name in listing.stdout.splitlines()
             if name.endswith((".h", ".cpp")) and not name.startswith(APART)]
    places = defaultdict(list)
    for path in paths:
        if path.is_file():
            for name, number in types_of(path):
                places[name].append((path, number))
    faults = [
        f"{path}:{number}: {name} is another type in {found[0][0]}"
        for name, found in places.items()
        for path, number in found[1:]
        if path != found[0][0]
    ]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
