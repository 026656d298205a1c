#!/usr/bin/env python3
"""Calls a program over HTTP: values, symbolic sizes, faults with their places, a call that is
stopped when its client leaves, and one that is late.

    python3 tests/load/serve_program.py build/ricci
"""

import asyncio
import json
import signal
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


asyncio.run(run(sys.argv[1]))
print("failures:", len(load.FAILURES))
sys.exit(1 if load.FAILURES else 0)
