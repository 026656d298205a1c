#!/usr/bin/env python3
"""Writes tests/data/safetensors/every_type.safetensors with the format's own library (safetensors 0.8,
numpy, ml_dtypes): six elements 0, 1, 2, … of every type, and names that JSON must escape."""

from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors.numpy import save

OUT = Path(__file__).parent / "safetensors"
TYPES = "bool uint8 int8 int16 uint16 float16 int32 uint32 float32 float64 int64 uint64".split()
TYPES = [np.dtype(t) for t in TYPES] + [np.dtype(ml_dtypes.bfloat16)]


def main():
    OUT.mkdir(exist_ok=True)
    numbers = np.arange(6).reshape(2, 3)
    tensors = {f"a {t.name}": (numbers % 2 if t == bool else numbers).astype(t) for t in TYPES}
    tensors['größe "q" \\'] = np.arange(2, dtype=np.float32)
    (OUT / "every_type.safetensors").write_bytes(save(tensors, {"format": "np"}))


if __name__ == "__main__":
    main()
