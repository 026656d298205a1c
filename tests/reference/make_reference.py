"""Writes tests/reference/values/*: what NumPy, SciPy and JAX make of programs Ricci can run, and
tests/reference/values/gradients/*: what JAX says the derivatives of programs are.

    python3 -m venv venv && venv/bin/pip install numpy scipy jax
    venv/bin/python tests/reference/make_reference.py

The files are committed; the C++ tests only read them.
"""
import pathlib

import jax

jax.config.update("jax_enable_x64", True)

import complex_numbers  # noqa: E402
import factorizations  # noqa: E402
import families_basic  # noqa: E402
import families_nn  # noqa: E402
import families_spectrum  # noqa: E402
import gradients_everyday  # noqa: E402
import gradients_models  # noqa: E402
import gradients_nn  # noqa: E402
import gradients_ops  # noqa: E402
import gradients_splats  # noqa: E402
import gradients_wrappers  # noqa: E402

FOLDER = pathlib.Path(__file__).parent / "values"


def write(folder, families):
    folder.mkdir(exist_ok=True)
    total = 0
    for family in [f for some in families for f in some()]:
        count = family.write(folder)
        total += count
        print(f"{family.name:14} {count:4} cases")
    print(f"{'total':14} {total:4} cases")


if __name__ == "__main__":
    write(FOLDER, [families_basic.families, families_nn.families, families_spectrum.values.families,
                   factorizations.families, complex_numbers.families])
    write(FOLDER / "gradients",
          [gradients_ops.families, gradients_nn.families, gradients_models.families,
           gradients_wrappers.families, gradients_everyday.families, gradients_splats.families,
           families_spectrum.derivatives.families,
           factorizations.gradient_families, complex_numbers.gradient_families])
