#!/usr/bin/env python3
"""Rejects source files over 600 lines, unless scripts/size_exceptions.txt lists
them with a reason ("path  reason"); rejects exceptions no longer needed."""

import subprocess
import sys
from pathlib import Path

LIMIT = 600
SUFFIXES = {".h", ".cpp", ".def", ".cu", ".py", ".sh", ".cmake", ".txt"}
EXCEPTIONS = Path("scripts/size_exceptions.txt")


def read_exceptions():
    reasons = {}
    for line in EXCEPTIONS.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            path, _, reason = line.partition(" ")
            reasons[path] = reason.strip()
    return reasons


def repository_files():
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True
    )
    return [Path(name) for name in listing.stdout.splitlines() if Path(name).is_file()]


def main():
    exceptions = read_exceptions()
    faults = [f"{path}: listed in {EXCEPTIONS} without a reason"
              for path, reason in exceptions.items() if not reason]
    long_files = set()
    for path in repository_files():
        if path.suffix not in SUFFIXES:
            continue
        lines = len(path.read_text().splitlines())
        if lines <= LIMIT:
            continue
        long_files.add(str(path))
        if str(path) not in exceptions:
            faults.append(f"{path}: {lines} lines, the limit is {LIMIT}; split it by meaning")
    faults += [f"{path}: listed in {EXCEPTIONS} but not over {LIMIT} lines"
               for path in exceptions if path not in long_files]
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
