#!/usr/bin/env python3
"""Writes tests/data/gguf/*: small GGUF files, for the reader's tests and as seeds of its fuzz harness,
written here from the format's public description."""

import struct
from pathlib import Path

OUT = Path(__file__).parent / "gguf"

KINDS = {"u8": 0, "i8": 1, "u16": 2, "i16": 3, "u32": 4, "i32": 5, "f32": 6, "bool": 7, "string": 8}
KINDS.update({"array": 9, "u64": 10, "i64": 11, "f64": 12})
CODES = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "f32": "f"}
CODES.update({"bool": "?", "u64": "Q", "i64": "q", "f64": "d"})
TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "q4_k": 12, "iq4_nl": 20, "i32": 26, "bf16": 30}

EVERY_KIND = [
    ("general.name", "string", "tiny"),
    ("general.u8", "u8", 255),
    ("general.i8", "i8", -1),
    ("general.u16", "u16", 65535),
    ("general.i16", "i16", -2),
    ("general.u32", "u32", 7),
    ("general.i32", "i32", -7),
    ("general.f32", "f32", 0.5),
    ("general.yes", "bool", True),
    ("general.u64", "u64", 1 << 63),
    ("general.i64", "i64", -(1 << 63)),
    ("general.f64", "f64", 1e-300),
    ("tokens", ("string", 3), ["a", "", "größe"]),
    ("scores", ("f32", 2), [0.25, -1.5]),
    ("table", ("array", 2), [(("i32", 2), [1, 2]), (("u8", 0), [])]),
]
TENSORS = [
    ("x", "f32", (2, 3), struct.pack("<6f", 0, 1, 2, 3, 4, 5)),
    ("h", "f16", (2,), struct.pack("<2e", 0.5, -2)),
    ("w", "q8_0", (1, 32), struct.pack("<e32b", 0.5, *range(-16, 16))),
    ("k", "q4_k", (256,), bytes(range(144))),
    ("i", "iq4_nl", (32,), bytes(18)),
    ("n", "i32", (0,), b""),
]


class Writer:
    def __init__(self, version):
        self.version = version
        self.data = b"GGUF" + struct.pack("<I", version)

    def length(self, value):
        self.data += struct.pack("<I" if self.version == 1 else "<Q", value)

    def text(self, value):
        raw = value.encode()
        self.length(len(raw))
        self.data += raw

    def value(self, kind, value):
        if isinstance(kind, tuple):
            element, count = kind
            self.data += struct.pack("<I", KINDS[element])
            self.length(count)
            for v in value:
                self.value(*v) if element == "array" else self.value(element, v)
        elif kind == "string":
            self.text(value)
        else:
            self.data += struct.pack("<" + CODES[kind], value)

    def file(self, keys, tensors, alignment=32):
        self.length(len(tensors))
        self.length(len(keys))
        for key, kind, value in keys:
            self.text(key)
            self.data += struct.pack("<I", KINDS["array" if isinstance(kind, tuple) else kind])
            self.value(kind, value)
        body = b""
        for name, kind, dims, raw in tensors:
            self.text(name)
            self.data += struct.pack("<I", len(dims))
            for size in reversed(dims):
                self.length(size)
            self.data += struct.pack("<IQ", TYPES[kind], len(body))
            body += raw + bytes(-len(raw) % alignment)
        return self.data + bytes(-len(self.data) % alignment) + body


def main():
    OUT.mkdir(exist_ok=True)
    for version in (1, 2, 3):
        (OUT / f"version{version}.gguf").write_bytes(Writer(version).file(EVERY_KIND, TENSORS))
    aligned = [("general.alignment", "u32", 8)]
    (OUT / "aligned.gguf").write_bytes(Writer(3).file(aligned, TENSORS[:3], 8))
    (OUT / "empty.gguf").write_bytes(Writer(3).file([], []))
    (OUT / "keys.gguf").write_bytes(Writer(3).file(EVERY_KIND[:4] + EVERY_KIND[12:], []))


if __name__ == "__main__":
    main()
