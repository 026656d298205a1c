#!/usr/bin/env python3
"""Rejects a list of one number where Clang takes it for a size. In a template, and in a lambda whose
parameters are `auto`, Clang 19 makes `Dims{n}` as if `Dims({n})` were written, which is n dimensions
of nothing. A variable's list (`Dims dims = {n}`), an argument's, and lists of more are what they say."""

import re
import sys

from brackets import CLOSE, OPEN, end_of, items_of, line_of, report, sources

# Vectors of a class that numbers become by themselves.
VECTOR = r"(?:\b(?:Dims|Axes)|\bstd::vector<(?:ricci::)?(?:Dim|Axis|AttrValue)>)"
LIST = re.compile(VECTOR + r"\{")
# A number has become one element already.
ELEMENT = re.compile(r"(?:ricci::)?(?:Dim|Axis|AttrValue)\b")
TEMPLATE = re.compile(r"\btemplate\s*<")
# Behind the parentheses of a function or a lambda, in front of its body.
BEHIND_PARAMETERS = re.compile(r"\)(?:\s*(?:const|mutable|noexcept|->[\w:<>&*\s,]+))*\s*$")
# `auto` as in a parameter; in a condition or a loop it is followed by a value.
AUTO_PARAMETER = re.compile(r"\bauto\b[^=;:,]*(?:,|\)$)")
def body_from(text, place):
    """The body that follows a declaration's head, or nothing where it has none."""
    while place < len(text) and text[place] not in "{;":
        place = end_of(text, place) if text[place] in "([" else place + 1
    return (place, end_of(text, place)) if place < len(text) and text[place] == "{" else None


def parameters_before(text, brace):
    """What is in the parentheses of the function or lambda whose body opens here, and they."""
    behind = BEHIND_PARAMETERS.search(text, max(0, brace - 200), brace)
    if behind is None:
        return ""
    depth = 0
    for place in range(behind.start(), -1, -1):
        depth += (text[place] in CLOSE) - (text[place] in OPEN)
        if depth == 0:
            return text[place:behind.start() + 1]
    return ""


def generic_parts(text):
    """Bodies of templates, and of functions and lambdas with `auto` parameters or `[]<…>`."""
    heads = [*TEMPLATE.finditer(text), *re.finditer(r"\]\s*<", text)]
    bodies = [body_from(text, head.end()) for head in heads]
    for brace in (found.start() for found in re.finditer(r"\{", text)):
        if AUTO_PARAMETER.search(parameters_before(text, brace)):
            bodies.append((brace, end_of(text, brace)))
    return [body for body in bodies if body]


def is_one_number(text, brace):
    """One element, which is not written as an element or a list."""
    items = items_of(text, brace)
    first = text[items[0][0]:items[0][1]].strip()
    return len(items) == 1 and first != "" and first[0] != "{" and not ELEMENT.match(first)


def faults():
    for path, text in sources():
        lists = list(LIST.finditer(text))
        generic = generic_parts(text) if lists else []
        for found in lists:
            if any(begin < found.start() < end for begin, end in generic) and is_one_number(
                    text, found.end() - 1):
                yield (f"{path}:{line_of(text, found.start())}: a list of one number in a template, "
                       "which Clang takes for a size: make it a variable, or write the element's type")


if __name__ == "__main__":
    sys.exit(report(faults()))
