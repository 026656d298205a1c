#!/usr/bin/env python3
"""Calls a program over HTTP: values, symbolic sizes, faults with their places, and calls that run
together: each gets what it gets alone, also beside one that faults, and one whose client leaves.

    python3 tests/load/serve_program.py build/ricci
"""

import asyncio
import json
import signal
import struct
import sys
import tempfile

import serve_load as load

PROGRAM = """
graph @double {
  %x = input "x" : f32[n, 2]
  %y = add %x, %x
  return %y
}
"""

# Takes its time, so that calls wait; a table that an index may miss; a mean over the rows of a call.
SLOW = """
graph @slow {
  %x = input "x" : f32[n, 64]
  %at = input "at" : i64[]
  %w = input "w" : f32[64, 4096]
  %back = input "back" : f32[4096, 64]
  %table = input "table" : f32[5]
  STEPS
  %picked = gather %table, %at {axis = 0}
  %mean = reduce %LAST {op = mean, axes = [0, 1]}
  %zero = sub %mean, %mean
  %own = reduce %x {op = mean, axes = [0, 1]}
  %a = add %own, %picked
  %y = add %a, %zero
  return %y
}
"""


def slow_program():
    last, steps = "x", []
    for i in range(20):
        steps += [f"%h{i} = matmul %{last}, %w", f"%g{i} = sin %h{i}", f"%x{i} = matmul %g{i}, %back"]
        last = f"x{i}"
    return SLOW.replace("STEPS", "\n  ".join(steps)).replace("LAST", last)


async def calls_that_run_together(tool, folder):
    file = f"{folder}/slow.ric"
    with open(file, "w") as out:
        out.write(slow_program())
    server = load.Server()
    await server.start(tool, file, "--threads", "1", "--batch", "8",
                       *(f"--input={name}={folder}/{name}.npy" for name in ("w", "back", "table")))
    try:
        def body(i, at=2, rows=1):
            return {"inputs": {"x": [[i + k / 8] * 64 for k in range(rows)], "at": at}}

        async def wanted(i, rows):
            status, answer = await call(server, body(i, rows=rows))
            value = next(iter(answer.get("outputs", {}).values()), None)
            mean = i + (rows - 1) / 16 + 30
            load.check(status == 200 and abs(value - mean) < 1e-3, f"{i}, {rows}: {status} {answer}")

        async def faulty():
            status, answer = await call(server, body(7, at=99))
            load.check(status == 422 and "99" in answer["error"]["message"], f"{status} {answer}")

        async def leaving():
            reader, writer = await server.open()
            writer.write(load.request("/v1/forward", body(3)))
            await writer.drain()
            writer.close()

        await wanted(0, 1)
        await asyncio.gather(*(wanted(i, 1 + i % 2) for i in range(40)), faulty(), leaving(), faulty())
        counts = await server.metrics()
        load.check(counts["calls_total"] == 41 and counts["calls_failed_total"] == 2, counts)
        load.check(counts["runs_total"] < 35, f"calls that wait run together: {counts}")
        server.process.send_signal(signal.SIGINT)
        load.check(await asyncio.wait_for(server.process.wait(), 60) == 0, "it ends")
    finally:
        if server.process.returncode is None:
            server.process.kill()
            await server.process.wait()


async def call(server, body):
    status, _, answer = await server.ask(load.request("/v1/forward", body))
    return status, json.loads(answer)


async def run(tool):
    with tempfile.NamedTemporaryFile("w", suffix=".ric") as file:
        file.write(PROGRAM)
        file.flush()
        server = load.Server()
        await server.start(tool, file.name, "--threads", "1")
        try:
            for rows in ([[1, 2]], [[1, -2.5], [0.5, 1e3]], []):
                status, answer = await call(server, {"inputs": {"x": rows}})
                wanted = [[2 * v for v in row] for row in rows]
                load.check(status == 200 and list(answer["outputs"].values()) == [wanted],
                           f"{rows}: {status} {answer}")
            for body, part in (
                ({"inputs": {"x": [[1, 2], [3]]}}, "byte"), ({"inputs": {"z": 1}}, "z"),
                ({}, "not given"), ({"inputs": {"x": [[1, "a"]]}}, "number"),
                (b"{", "early"), ({"input": {}}, "no \"input\""),
                ({"inputs": {"x": [[1, 2]]}, "outputs": ["nothing"]}, "nothing")):
                status, answer = await call(server, body)
                load.check(status == 400 and part in answer["error"]["message"],
                           f"{body}: {status} {answer}")
            many = await asyncio.gather(*(call(server, {"inputs": {"x": [[i, i]]}})
                                          for i in range(50)))
            for i, (status, answer) in enumerate(many):
                load.check(status == 200 and list(answer["outputs"].values()) == [[[2 * i, 2 * i]]],
                           f"call {i}: {status} {answer}")
            server.process.send_signal(signal.SIGINT)
            load.check(await asyncio.wait_for(server.process.wait(), 60) == 0, "it ends")
        finally:
            if server.process.returncode is None:
                server.process.kill()
                await server.process.wait()


def write_npy(path, shape, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (128 - 11 - len(head)) + "\n"
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                  + struct.pack(f"<{len(values)}f", *values))


asyncio.run(run(sys.argv[1]))
with tempfile.TemporaryDirectory() as scratch:
    write_npy(f"{scratch}/table.npy", (5,), [10, 20, 30, 40, 50])
    write_npy(f"{scratch}/w.npy", (64, 4096), [(i * 37 % 101 - 50) / 500 for i in range(64 * 4096)])
    write_npy(f"{scratch}/back.npy", (4096, 64), [(i * 53 % 97 - 48) / 5000 for i in range(64 * 4096)])
    asyncio.run(calls_that_run_together(sys.argv[1], scratch))
print("failures:", len(load.FAILURES))
sys.exit(1 if load.FAILURES else 0)
