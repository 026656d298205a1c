#!/usr/bin/env python3
"""Finds host arithmetic that the caller's floating-point environment could reach. A source that calls a
function of <cmath> which rounds, or multiplies or divides by what was a whole number, holds a
DefaultFloatEnvironment where it is entered, or is listed here with what holds one for it. It sees that
there is one in the file, not that it is in the right place: tests/array and tests/nn/
float_environment_test.cpp are for that."""

import re
import sys

from brackets import line_of, report, sources

ROUNDS = re.compile(
    r"\bstd::(?:sqrt|cbrt|hypot|log|log2|log10|log1p|exp|exp2|expm1|sin|cos|tan|tanh|atan|atan2|pow|"
    r"erf|erfc|lgamma|tgamma|ceil|rint|lrint|llrint|nearbyint|fma)\("
    r"|[*/] static_cast<(?:double|float)>\("
    r"|\bstatic_cast<(?:double|float)>\([^;\n]*\) [*/] ")
GUARD = '"support/float_environment.h"'

# Folders and sources behind an entry that sets the environment, by that entry.
HELD = {
    "src/backend/": "what runs programs",
    "src/loop/": "make_program, and kernels",
    "src/op/spectrum.cpp": "the tables of rules",
    "src/quant/": "encode, decode",
    "src/rule/": "the tables of rules",
    "src/schedule/": "make_program",
    "src/support/philox.h": "exact: a whole number by a power of two",
    "src/support/unit_root.h": "kernels, and what compiles them",
    "src/transform/curve_speed.h": "jet, nth_order_grad",
    "src/transform/polarize.cpp": "nth_order_grad",
    "src/transform/taylor.cpp": "jet, nth_order_grad",
    "src/type/small_float.cpp": "Tensor",
    "src/draw/layout.cpp": "to_svg, to_html",
    "src/draw/scene.cpp": "to_svg, to_html",
    "src/model/line_search.cpp": "minimise",
    "src/model/optimizers/": "make_training_graph",
    "src/model/product_layers.cpp": "quantize",
    "src/model/trained_codes.cpp": "quantize",
    "src/model/value_range.cpp": "ValueStatistics",
    "src/train/report/": "run_report",
}


def faults():
    used = set()
    for path, text in sources():
        if not path.startswith("src/"):
            continue
        found = ROUNDS.search(text)
        if not found:
            continue
        held = next((entry for entry in HELD if path.startswith(entry)), None)
        with open(path, encoding="utf-8") as file:
            if GUARD in file.read():
                continue
        if held is None:
            yield (f"{path}:{line_of(text, found.start())}: the caller's floating-point environment reaches "
                   f"'{found[0].strip()}'; hold a DefaultFloatEnvironment, or list what holds one in "
                   "scripts/check_floats.py")
        used.add(held)
    for entry in HELD:
        if entry not in used:
            yield f"scripts/check_floats.py: '{entry}' is listed and needs no entry"


if __name__ == "__main__":
    sys.exit(report(faults()))
