"""All cases: those of the ops, described beside this file, and those of bench/programs."""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "programs"
sys.path[:0] = [p for p in (str(HERE), str(PROGRAMS)) if p not in sys.path]

import cases

OPS = ["elementwise", "movement", "reductions", "products", "networks", "loops"]


def load():
    if not cases.ALL:
        for module in OPS + sorted(p.stem for p in PROGRAMS.glob("programs_*.py")):
            importlib.import_module(module)
    return cases.ALL


def case_named(name):
    return load()[name]


def of_ops():
    return [c for c in load().values() if c.op != "program"]


def of_programs():
    return [c for c in load().values() if c.op == "program"]
