#!/usr/bin/env python3
"""Writes tests/reference/quant/blocks.npz and schemes.npz: bytes and the values they stand for, of every
block format and weight scheme, computed here element by element from the formats' public descriptions.

    python3 -m venv venv && venv/bin/pip install numpy
    venv/bin/python tests/reference/make_quant_values.py
"""

import struct
from pathlib import Path

import numpy as np

OUT = Path(__file__).parent / "quant"
F32 = np.float32


def f16(data, at):
    return F32(np.frombuffer(bytes(data[at : at + 2]), "<f2")[0])


def i8(byte):
    return byte - 256 if byte > 127 else byte


# Floats of 4 and 8 bits, written as tables of their values.

FP4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
FP4 = [F32(v) for v in FP4] + [F32(-v) for v in FP4]


def fp8(byte, exponent_bits, fraction_bits, bias):
    sign = -1.0 if byte & 128 else 1.0
    exponent = (byte >> fraction_bits) & ((1 << exponent_bits) - 1)
    fraction = (byte & ((1 << fraction_bits) - 1)) / (1 << fraction_bits)
    if exponent == 0:
        return F32(sign * fraction * 2.0 ** (1 - bias))
    return F32(sign * (1 + fraction) * 2.0 ** (exponent - bias))


def e4m3(byte):
    return F32(np.nan) if byte & 127 == 127 else fp8(byte, 4, 3, 7)


def e5m2(byte):
    if byte & 0x7C == 0x7C:
        if byte & 3:
            return F32(np.nan)
        return F32(-np.inf if byte & 128 else np.inf)
    return fp8(byte, 5, 2, 15)


def e8m0(byte):
    return F32(np.nan) if byte == 255 else F32(2.0 ** (byte - 127))


# Block formats: from the bytes of a block to its values.


def q4_0(b):
    d, qs = f16(b, 0), b[2:]
    return [d * F32((q & 15) - 8) for q in qs] + [d * F32((q >> 4) - 8) for q in qs]


def q4_1(b):
    d, m, qs = f16(b, 0), f16(b, 2), b[4:]
    return [d * F32(q & 15) + m for q in qs] + [d * F32(q >> 4) + m for q in qs]


def five_bits(qh, qs):
    low = [(qs[i] & 15) | ((qh >> i) & 1) << 4 for i in range(16)]
    return low + [(qs[i] >> 4) | ((qh >> (i + 16)) & 1) << 4 for i in range(16)]


def q5_0(b):
    d, (qh,) = f16(b, 0), struct.unpack("<I", bytes(b[2:6]))
    return [d * F32(q - 16) for q in five_bits(qh, b[6:])]


def q5_1(b):
    d, m, (qh,) = f16(b, 0), f16(b, 2), struct.unpack("<I", bytes(b[4:8]))
    return [d * F32(q) + m for q in five_bits(qh, b[8:])]


def q8_0(b):
    return [f16(b, 0) * F32(i8(q)) for q in b[2:]]


def q8_1(b):
    return [f16(b, 0) * F32(i8(q)) for q in b[4:]]


def q2_k(b):
    scales, qs, d, dmin = b[:16], b[16:80], f16(b, 80), f16(b, 82)
    out = []
    for a in range(2):
        for g in range(4):
            for l in range(32):
                q = (qs[32 * a + l] >> (2 * g)) & 3
                sc = scales[8 * a + 2 * g + (l >= 16)]
                out.append(d * F32(sc & 15) * F32(q) - dmin * F32(sc >> 4))
    return out


def q3_k(b):
    hmask, qs, scales, d = b[:32], b[32:96], b[96:108], f16(b, 108)
    out = []
    for a in range(2):
        for g in range(4):
            for l in range(32):
                j = 8 * a + 2 * g + (l >= 16)
                low = scales[j] & 15 if j < 8 else scales[j - 8] >> 4
                high = (scales[8 + j % 4] >> (2 * (j // 4))) & 3
                q = (qs[32 * a + l] >> (2 * g)) & 3
                if not (hmask[l] >> (4 * a + g)) & 1:
                    q -= 4
                out.append(d * F32((low | high << 4) - 32) * F32(q))
    return out


def sixes(s, j):
    if j < 4:
        return s[j] & 63, s[j + 4] & 63
    return (s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4


def q4_k(b):
    d, dmin, scales, qs = f16(b, 0), f16(b, 2), b[4:16], b[16:]
    out = []
    for p in range(4):
        for half in range(2):
            sc, mn = sixes(scales, 2 * p + half)
            for l in range(32):
                q = qs[32 * p + l] >> 4 if half else qs[32 * p + l] & 15
                out.append(d * F32(sc) * F32(q) - dmin * F32(mn))
    return out


def q5_k(b):
    d, dmin, scales, qh, qs = f16(b, 0), f16(b, 2), b[4:16], b[16:48], b[48:]
    out = []
    for p in range(4):
        for half in range(2):
            j = 2 * p + half
            sc, mn = sixes(scales, j)
            for l in range(32):
                q = qs[32 * p + l] >> 4 if half else qs[32 * p + l] & 15
                q += 16 * ((qh[l] >> j) & 1)
                out.append(d * F32(sc) * F32(q) - dmin * F32(mn))
    return out


def q6_k(b):
    ql, qh, scales, d = b[:128], b[128:192], b[192:208], f16(b, 208)
    out = [None] * 256
    for a in range(2):
        for l in range(32):
            h = qh[32 * a + l]
            codes = (
                ql[64 * a + l] & 15 | (h & 3) << 4,
                ql[64 * a + 32 + l] & 15 | ((h >> 2) & 3) << 4,
                ql[64 * a + l] >> 4 | ((h >> 4) & 3) << 4,
                ql[64 * a + 32 + l] >> 4 | ((h >> 6) & 3) << 4,
            )
            for g, code in enumerate(codes):
                scale = i8(scales[8 * a + 2 * g + l // 16])
                out[128 * a + 32 * g + l] = d * F32(scale) * F32(code - 32)
    return out


def q8_k(b):
    d = F32(struct.unpack("<f", bytes(b[:4]))[0])
    return [d * F32(i8(q)) for q in b[4:260]]


def mxfp4(b):
    scale = e8m0(b[0])
    return [FP4[q & 15] * scale for q in b[1:]] + [FP4[q >> 4] * scale for q in b[1:]]


def nvfp4(b):
    out = []
    for group in range(4):
        scale = e4m3(b[group] & 127)
        qs = b[4 + 8 * group : 12 + 8 * group]
        out += [FP4[q & 15] * scale for q in qs] + [FP4[q >> 4] * scale for q in qs]
    return out


# name: decoder, elements, bytes, where f16 scales lie
FORMATS = {
    "q4_0": (q4_0, 32, 18, [0]),
    "q4_1": (q4_1, 32, 20, [0, 2]),
    "q5_0": (q5_0, 32, 22, [0]),
    "q5_1": (q5_1, 32, 24, [0, 2]),
    "q8_0": (q8_0, 32, 34, [0]),
    "q8_1": (q8_1, 32, 36, [0, 2]),
    "q2_k": (q2_k, 256, 84, [80, 82]),
    "q3_k": (q3_k, 256, 110, [108]),
    "q4_k": (q4_k, 256, 144, [0, 2]),
    "q5_k": (q5_k, 256, 176, [0, 2]),
    "q6_k": (q6_k, 256, 210, [208]),
    "q8_k": (q8_k, 256, 292, []),
    "mxfp4": (mxfp4, 32, 17, []),
    "nvfp4": (nvfp4, 64, 36, []),
    "fp8_e4m3": (lambda b: [e4m3(b[0])], 1, 1, []),
    "fp8_e5m2": (lambda b: [e5m2(b[0])], 1, 1, []),
}
# 0, -0, the least and largest subnormal, the least normal, 1, the largest, infinities, NaN
F16_EDGES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00]
F32_EDGES = [0.0, -0.0, 1e-45, -1e-38, 3e38, np.inf, -np.inf, np.nan]


def blocks_of(name, rng):
    _, elements, size, scales = FORMATS[name]
    if elements == 1:
        return [[code] for code in range(256)]
    blocks = [[0] * size, [255] * size]
    blocks += [list(rng.integers(0, 256, size)) for _ in range(12 if elements < 256 else 5)]
    ordinary = len(blocks)
    for edge in F16_EDGES if scales else []:
        block = list(rng.integers(0, 256, size))
        for at in scales:
            block[at : at + 2] = edge & 255, edge >> 8
        blocks.append(block)
    if name == "q8_k":
        for edge in F32_EDGES:
            blocks.append(list(struct.pack("<f", edge)) + list(rng.integers(0, 256, size - 4)))
    if name in ("mxfp4", "nvfp4"):
        for scale in (0, 1, 8, 126, 127, 128, 254, 255):
            front = 1 if name == "mxfp4" else 4
            blocks.append([scale] * front + list(rng.integers(0, 256, size - front)))
    # Scales of most random blocks are ordinary numbers.
    for block in blocks[2:ordinary]:
        for at in scales:
            value = np.float16(rng.uniform(-0.1, 0.1))
            block[at : at + 2] = value.tobytes()
    return [[int(byte) for byte in block] for block in blocks]


def write_blocks(rng):
    arrays = {}
    for name, (decode, elements, size, _) in FORMATS.items():
        blocks = blocks_of(name, rng)
        values = [decode(block) for block in blocks]
        arrays[name + ".bytes"] = np.array(blocks, np.uint8).reshape(-1, size)
        arrays[name + ".values"] = np.array(values, F32).reshape(-1, elements)
    np.savez_compressed(OUT / "blocks.npz", **arrays)


# Weight schemes: one matrix each, k by n.


def nibble(codes, element):
    return codes[element // 2] & 15 if element % 2 == 0 else codes[element // 2] >> 4


def scheme_value(name, block, parts, p, j, n):
    e = p * n + j
    codes = parts["codes"]
    scale = parts["scales"]
    if name == "int8_block":
        return F32(i8(int(codes[e]))) * scale[p // block, j]
    if name == "int8_block_asym":
        return (F32(i8(int(codes[e]))) - parts["zero_points"][p // block, j]) * scale[p // block, j]
    if name == "int4_block":
        zero = parts["zero_points"][p // block, j]
        return (F32(nibble(codes, e)) - zero) * scale[p // block, j]
    if name == "fp8_e4m3":
        return e4m3(int(codes[e])) * scale[j]
    if name == "fp8_e5m2":
        return e5m2(int(codes[e])) * scale[j]
    return FP4[nibble(codes, e)] * e4m3(int(scale[p // 16, j])) * parts["global"][0]


def write_schemes(rng):
    arrays = {}
    k, n = 37, 5
    for name, block in (
        ("int8_block", 8),
        ("int8_block_asym", 16),
        ("int4_block", 32),
        ("fp8_e4m3", 0),
        ("fp8_e5m2", 0),
        ("nvfp4_block", 0),
    ):
        count = (k * n + 1) // 2 if name in ("int4_block", "nvfp4_block") else k * n
        parts = {"codes": rng.integers(0, 256, count).astype(np.uint8)}
        groups = -(-k // (block or 16))
        if name == "nvfp4_block":
            parts["scales"] = rng.integers(0, 256, (groups, n)).astype(np.uint8)
            parts["global"] = np.array([0.013], F32)
        else:
            shape = (groups, n) if block else (n,)
            parts["scales"] = rng.normal(0, 0.1, shape).astype(F32)
        if name in ("int8_block_asym", "int4_block"):
            parts["zero_points"] = rng.uniform(-9, 9, (groups, n)).astype(F32)
        full = f"{name}_{block}" if block else name
        values = [[scheme_value(name, block, parts, p, j, n) for j in range(n)] for p in range(k)]
        for part, array in parts.items():
            arrays[f"{full}.{part}"] = array
        arrays[full + ".values"] = np.array(values, F32)
    np.savez_compressed(OUT / "schemes.npz", **arrays)


def main():
    OUT.mkdir(exist_ok=True)
    with np.errstate(all="ignore"):
        write_blocks(np.random.default_rng(1))
        write_schemes(np.random.default_rng(2))


if __name__ == "__main__":
    main()
