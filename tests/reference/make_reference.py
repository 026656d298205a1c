"""Writes tests/reference/values/*: what NumPy, SciPy and JAX make of programs Ricci can run.

    python3 -m venv venv && venv/bin/pip install numpy scipy jax
    venv/bin/python tests/reference/make_reference.py

The files are committed; the C++ tests only read them.
"""
import pathlib

import jax

jax.config.update("jax_enable_x64", True)

import families_basic  # noqa: E402
import families_nn  # noqa: E402

FOLDER = pathlib.Path(__file__).parent / "values"

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    total = 0
    for family in [*families_basic.families(), *families_nn.families()]:
        count = family.write(FOLDER)
        total += count
        print(f"{family.name:14} {count:4} cases")
    print(f"{'total':14} {total:4} cases")
