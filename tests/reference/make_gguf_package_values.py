#!/usr/bin/env python3
"""Writes tests/reference/quant/gguf_package.npz: what the GGUF project's own Python package makes of
values (the formats it encodes) and of bytes (those it decodes).

    python3 -m venv venv && venv/bin/pip install numpy gguf
    venv/bin/python tests/reference/make_gguf_package_values.py
"""

from pathlib import Path

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

ENCODED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4"]
DECODED = ENCODED + ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "NVFP4"]
# Where scales in f16 are in a block: random ones would be NaN and infinite too often.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
    "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "MXFP4": [], "NVFP4": [],
}  # fmt: skip


def values(random):
    normal = random.standard_normal((4, 256))
    kinds = [normal, random.laplace(size=(4, 256)), random.uniform(-1, 1, (4, 256)), np.abs(normal)]
    kinds.append(np.zeros((1, 256)))
    return np.concatenate(kinds).astype(np.float32)


def blocks(random, name):
    data = random.integers(0, 256, (12, GGML_QUANT_SIZES[GGMLQuantizationType[name]][1]), np.uint8)
    for at in SCALES[name]:
        data[:, at : at + 2] = random.normal(size=12).astype("<f2").view(np.uint8).reshape(12, 2)
    if name == "MXFP4":
        data[:, 0] = random.integers(110, 140, 12)
    if name == "NVFP4":
        data[:, :4] = random.integers(0, 0x7F, (12, 4))
    return data


def main():
    random = np.random.default_rng(3)
    x = values(random)
    arrays = {"x": x}
    for name in ENCODED:
        arrays[name.lower() + ".encoded"] = quants.quantize(x, GGMLQuantizationType[name])
    for name in DECODED:
        data = blocks(random, name)
        arrays[name.lower() + ".bytes"] = data
        arrays[name.lower() + ".values"] = quants.dequantize(data, GGMLQuantizationType[name])
    np.savez_compressed(Path(__file__).parent / "quant" / "gguf_package.npz", **arrays)


if __name__ == "__main__":
    main()
