#!/usr/bin/env python3
"""Writes tests/data/npy/*: small files made by NumPy itself, for the reader's tests."""

import io
import zipfile
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent / "npy"

MATRIX = np.arange(6).reshape(2, 3)


class Unseekable(io.RawIOBase):
    """A stream that cannot go back, so that sizes follow each zip entry's data."""

    def __init__(self):
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, piece):
        self.data += piece
        return len(piece)


def main():
    OUT.mkdir(exist_ok=True)
    for code in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 c8 c16".split():
        np.save(OUT / f"{code}.npy", (MATRIX - (0 if code[0] == "u" else 2)).astype(code))
    np.save(OUT / "b1.npy", MATRIX % 2 == 0)
    np.save(OUT / "big_endian.npy", MATRIX.astype(">f4"))
    np.save(OUT / "big_endian_complex.npy", (MATRIX + 1j * MATRIX[::-1]).astype(">c8"))
    np.save(OUT / "fortran.npy", np.asfortranarray(MATRIX.astype("i4")))
    np.save(OUT / "scalar.npy", np.array(2.5))
    np.save(OUT / "empty.npy", np.zeros((0, 3), "f4"))
    np.save(OUT / "structured.npy", np.zeros(1, [("a", "f4"), ("b", "i4")]))
    for major in (2, 3):
        with open(OUT / f"version{major}.npy", "wb") as file:
            np.lib.format.write_array(file, MATRIX.astype("f4"), version=(major, 0))

    arrays = {"x": MATRIX.astype("f4"), "a/b": np.arange(4), "zeros": np.zeros(1000)}
    np.savez(OUT / "stored.npz", **{k: arrays[k] for k in ("x", "a/b")})
    np.savez_compressed(OUT / "deflated.npz", **arrays)
    stream = Unseekable()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", (OUT / "f4.npy").read_bytes())
    (OUT / "descriptors.npz").write_bytes(stream.data)


if __name__ == "__main__":
    main()
