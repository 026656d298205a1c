"""C++ as brackets, for the checks that look at what stands in which."""

import re
import subprocess
from pathlib import Path

OPEN, CLOSE = "([{", ")]}"
BLANKED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
                     re.DOTALL)


def blank(text):
    """Without comments and literals, and as long."""
    return BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def end_of(text, start):
    """Behind the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(text)):
        depth += (text[place] in OPEN) - (text[place] in CLOSE)
        if depth == 0:
            return place + 1
    return len(text)


def begin_of(text, place):
    """The bracket that `place` stands in; -1 where it stands in none, or behind a statement."""
    depth = 0
    for at in range(place, -1, -1):
        if text[at] in CLOSE:
            depth += 1
        elif text[at] in OPEN:
            if depth == 0:
                return at
            depth -= 1
        elif text[at] == ";" and depth == 0:
            return -1
    return -1


def items_of(text, start):
    """Where the items begin and end that commas part in the bracket at `start`."""
    items, depth, begin, end = [], 0, start + 1, end_of(text, start) - 1
    for place in range(begin, end):
        depth += (text[place] in OPEN) - (text[place] in CLOSE)
        if text[place] == "," and depth == 0:
            items.append((begin, place))
            begin = place + 1
    return [*items, (begin, end)]


def sources():
    """Every C++ file of the repository, and its text without comments and literals."""
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.h", "*.cpp", "*.inc"],
        check=True, capture_output=True, text=True)
    for name in listing.stdout.splitlines():
        if Path(name).is_file():
            yield name, blank(Path(name).read_text(encoding="utf-8"))


def line_of(text, place):
    return text.count("\n", 0, place) + 1


def report(faults):
    """Prints them; the exit status."""
    faults = list(faults)
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0
