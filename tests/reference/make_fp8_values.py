#!/usr/bin/env python3
"""Writes tests/reference/quant/fp8_products.npz: a product of matrices in FP8 with a scale for each
tensor, and its gradients, computed with the FP8 types of ml_dtypes.

    python3 -m venv venv && venv/bin/pip install numpy ml_dtypes
    venv/bin/python tests/reference/make_fp8_values.py
"""

from pathlib import Path

import ml_dtypes
import numpy as np

F32 = np.float32
LARGEST = {ml_dtypes.float8_e4m3fn: 448.0, ml_dtypes.float8_e5m2: 57344.0}


def coded(x, kind):
    """Codes as f64, and the scale that takes the largest magnitude to the largest code."""
    scale = F32(np.abs(x).max()) / F32(LARGEST[kind])
    return (x / scale).astype(kind).astype(np.float64), np.float64(scale)


def main():
    random = np.random.default_rng(5)
    x = (random.standard_normal((7, 13)) * np.exp(random.standard_normal((7, 13)))).astype(F32)
    w = (random.standard_normal((13, 5)) * 0.01).astype(F32)
    dy = (random.standard_normal((7, 5)) * np.exp(3 * random.standard_normal((7, 5)))).astype(F32)
    cx, sx = coded(x, ml_dtypes.float8_e4m3fn)
    cw, sw = coded(w, ml_dtypes.float8_e4m3fn)
    cd, sd = coded(dy, ml_dtypes.float8_e5m2)
    np.savez(
        Path(__file__).parent / "quant" / "fp8_products.npz",
        x=x,
        w=w,
        dy=dy,
        y=(cx @ cw) * sx * sw,
        dx=(cd * sd) @ (cw * sw).T,
        dw=(cx * sx).T @ (cd * sd),
    )


if __name__ == "__main__":
    main()
