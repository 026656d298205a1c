#!/usr/bin/env python3
"""Trains two small language models with `ricci train`, serves each run with `ricci serve`, and asks for
completions of texts: whole, streamed, with a stop text, and with a prompt of tokens. Then it cuts the
weights of the run, and those of a model in a public layout, short while they are served. It does the same
with models that look at images, which are given as numbers and as PNG.

    python3 tests/load/serve_run.py build/ricci tests/data/models/gpt2
"""

import base64
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import urllib.request
import zlib
from pathlib import Path

SMALL = ["--steps", "3", "--batch", "4", "--width", "8", "--layers", "1", "--context", "32",
         "--evaluate-every", "0", "--sample-every", "0"]


def as_letters(data):
    """Bytes as the letters that a tokenizer.json has for them: GPT-2's."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in kept]
    return "".join(chr(b) if b in kept else chr(256 + others.index(b)) for b in data)


def check(holds, what):
    if not holds:
        sys.exit(f"FAILED: {what}")


def ask(port, path="/v1/completions", **body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}",
                                     json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def get(port, path, method="GET"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def completion(port, **body):
    return json.loads(ask(port, max_tokens=12, temperature=0, **body))["choices"][0]


def examine(port, sampled, vocabulary):
    whole = completion(port, prompt="The ")
    check(len(whole["tokens"]) == 12 and whole["finish_reason"] == "length", whole)
    byte_of = {token: text for text, token in vocabulary.items()}
    written = "".join(byte_of[t] for t in whole["tokens"])
    check(sampled[4:16] == written, f"{sampled!r} is not 'The ' and {written!r}")
    tokens = completion(port, prompt=[vocabulary[c] for c in "The\u0120"])
    check(tokens == whole, f"{tokens} is not {whole}")
    lines = ask(port, prompt="The ", max_tokens=12, temperature=0, stream=True).split("\n\n")
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    pieces = [e["choices"][0].get("text", "") for e in events]
    check("".join(pieces) == whole["text"], f"{pieces} are not {whole['text']!r}")
    letters = [c for c in whole["text"] if c.isascii()]
    if letters:
        stopped = completion(port, prompt="The ", stop=letters[0])
        check(stopped["finish_reason"] == "stop", f"{stopped} is not stopped by {letters[0]!r}")


def serve(tool, folder, kind):
    run = f"{folder}/{kind}"
    heads = ["--heads", "2"] if kind == "gpt" else []
    subprocess.run([tool, "train", kind, *SMALL, *heads, "--out", run], check=True,
                   stdout=subprocess.DEVNULL)
    sampled = subprocess.run([tool, "sample", run, "--prompt", "The ", "--length", "14",
                              "--temperature", "0"], check=True, stdout=subprocess.PIPE).stdout
    with open(f"{run}/tokenizer.json") as file:
        vocabulary = json.load(file)["model"]["vocab"]
    with served(tool, run, kind) as port:
        examine(port, as_letters(sampled), vocabulary)
        models = json.loads(get(port, "/v1/models"))
        check([m["id"] for m in models["data"]] == [kind], models)
        check(get(port, "/health", "HEAD") == "", "HEAD has no body")
        for checkpoint in Path(run, "checkpoints").iterdir():
            os.truncate(checkpoint, 8)
        # Longer than before: a program that was not compiled yet takes the weights anew.
        check(len(completion(port, prompt="The " * 6)["tokens"]) > 0, "a cut checkpoint")


def grey_png(rows):
    """Rows of bytes as a picture."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def serve_images(tool, folder, kind):
    run = f"{folder}/{kind}"
    heads = ["--heads", "2"] if kind == "vit" else []
    subprocess.run([tool, "train", kind, "--steps", "3", "--batch", "4", "--width", "8", "--layers", "1",
                    "--examples", "60", "--size", "8", *heads, "--evaluate-every", "0", "--out", run],
                   check=True, stdout=subprocess.DEVNULL)
    pictures = [[[(31 * i + 7 * r * r + 3 * c * i) % 256 for c in range(8)] for r in range(8)]
                for i in range(12)]

    def says(*images, png=False):
        x = [base64.b64encode(grey_png(p)).decode() if png else [[[v / 255 for v in row] for row in p]]
             for p in images]
        return json.loads(ask(port, "/v1/forward", inputs={"x": x}))["outputs"]

    def same(one, other):
        return all(abs(a - b) < 1e-4 for p, q in zip(one, other, strict=True)
                   for a, b in zip(p, q, strict=True))

    with served(tool, run, kind) as port:
        together = says(*pictures)
        check(len(together["logits"]) == 12 and len(together["logits"][0]) == 10, together)
        check(together["class"] == [row.index(max(row)) for row in together["logits"]], together)
        check(same(says(*pictures, png=True)["logits"], together["logits"]), "pictures are numbers")
        for checkpoint in Path(run, "checkpoints").iterdir():
            os.truncate(checkpoint, 8)
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            alone = list(pool.map(says, pictures))
        check(same([a["logits"][0] for a in alone], together["logits"]), "calls of several clients")


@contextlib.contextmanager
def served(tool, what, name):
    with subprocess.Popen([tool, "serve", what, "--port", "0"], stdout=subprocess.PIPE) as server:
        try:
            line = server.stdout.readline().decode()
            check(line.startswith(f"{name} at http://"), line)
            yield int(re.search(r":(\d+)/", line)[1])
        finally:
            server.send_signal(signal.SIGTERM)
        check(server.wait(60) == 0, "the server ends well")


def serve_cut(tool, folder, model):
    """Someone writes over the weights of a model in a public layout."""
    copy = f"{folder}/copied"
    shutil.copytree(model, copy)
    with served(tool, copy, "copied") as port:
        os.truncate(f"{copy}/model.safetensors", 8)
        for length in (2, 20):
            answer = completion(port, prompt=[1] * length)
            check(len(answer["tokens"]) > 0, answer)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("gpt", "mamba"):
            serve(sys.argv[1], folder, kind)
        for kind in ("cnn", "mlp", "vit"):
            serve_images(sys.argv[1], folder, kind)
        serve_cut(sys.argv[1], folder, sys.argv[2])
    print("all runs answered")


if __name__ == "__main__":
    main()
