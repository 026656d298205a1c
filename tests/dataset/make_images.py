#!/usr/bin/env python3
"""Writes the pictures in tests/dataset/values. Needs `pip install pillow`."""

import struct
import zlib
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent / "values"


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(name, header, *chunks):
    body = chunk(b"IHDR", struct.pack(">IIBBBBB", *header)) + b"".join(chunk(k, d) for k, d in chunks)
    (HERE / name).write_bytes(b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b""))


def adam7(pixels, width, height):
    """Rows of the seven passes, each behind a filter byte."""
    out = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        for y in range(y0, height, dy):
            row = b"".join(bytes(pixels[y][x]) for x in range(x0, width, dx))
            out += b"\0" + row if row else b""
    return out


def main():
    pixels = [[(40 * x, 60 * y, 200) for x in range(3)] for y in range(2)]
    rgb = Image.new("RGB", (3, 2))
    rgb.putdata([p for row in pixels for p in row])
    rgb.save(HERE / "rgb.png")
    grey = Image.new("L", (3, 2))
    grey.putdata([0, 50, 100, 150, 200, 250])
    grey.save(HERE / "grey.png")
    bits = Image.new("1", (3, 2))
    bits.putdata([0, 255, 0, 255, 0, 255])
    bits.save(HERE / "bits.png")
    rgba = rgb.convert("RGBA")
    rgba.putalpha(7)
    rgba.save(HERE / "rgba.png")
    flat = [p for row in pixels for p in row]
    rows = b"".join(b"\0" + bytes(range(3 * y, 3 * y + 3)) for y in range(2))
    png("palette.png", (3, 2, 8, 3, 0, 0, 0), (b"PLTE", b"".join(map(bytes, flat))), (b"IDAT", zlib.compress(rows)))
    wide = b"".join(b"\0" + b"".join(struct.pack(">HHH", *(257 * c for c in p)) for p in row) for row in pixels)
    png("rgb16.png", (3, 2, 16, 2, 0, 0, 0), (b"IDAT", zlib.compress(wide)))
    png("interlaced.png", (3, 2, 8, 2, 0, 0, 1), (b"IDAT", zlib.compress(adam7(pixels, 3, 2))))
    png("huge.png", (60000, 1000, 8, 2, 0, 0, 0), (b"IDAT", zlib.compress(b"\0" * 100)))
    text = b"a\0\0" + zlib.compress(b"\0" * 8_000_000, 9)
    png("text.png", (1, 1, 8, 2, 0, 0, 0), (b"zTXt", text), (b"IDAT", zlib.compress(b"\0\1\2\3")))
    colour = Image.new("RGB", (17, 9), (200, 100, 50))
    colour.save(HERE / "flat.jpg", quality=95)
    colour.save(HERE / "progressive.jpg", quality=95, progressive=True)
    colour.convert("L").save(HERE / "grey.jpg", quality=95)
    Image.new("CMYK", (17, 9), (55, 155, 205, 0)).save(HERE / "cmyk.jpg", quality=95)


main()
