#!/usr/bin/env python3
"""Rejects a call that moves from a variable in one argument and uses it in another: Clang makes the
arguments from left to right and GCC from right to left, so one of them uses what is gone. clang-tidy
says it too, of the files it is run on."""

import re
import sys

from brackets import begin_of, items_of, line_of, report, sources

MOVE = re.compile(r"\bstd::move\(([A-Za-z_]\w*(?:(?:\.|->)\w+)*)\)")
# `for (…)` and the like are no calls.
STATEMENT = re.compile(r"\b(?:if|for|while|switch)\s*$")


def other_use(text, move):
    """Does an argument of a call that the move is in use what another moves from?"""
    use = re.compile(rf"(?<![\w.>:]){re.escape(move[1])}(?!\w)(?!\s*\()")
    opened = begin_of(text, move.start() - 1)
    while opened >= 0:
        items = items_of(text, opened)
        if text[opened] == "{":  # the items of a list are made in order; and bodies hold statements
            if ";" in text[opened:items[-1][1]]:
                return False
            items = [item for item in items if item[1] > move.start()]
        elif STATEMENT.search(text, max(0, opened - 10), opened):
            return False
        if any(use.search(text, *item) for item in items if not item[0] <= move.start() < item[1]):
            return True
        opened = begin_of(text, opened - 1)
    return False


def faults():
    for path, text in sources():
        for move in MOVE.finditer(text):
            if other_use(text, move):
                yield (f"{path}:{line_of(text, move.start())}: '{move[1]}' is moved from and used in one "
                       "call, in an order that the compiler chooses")


if __name__ == "__main__":
    sys.exit(report(faults()))
