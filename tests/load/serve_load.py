#!/usr/bin/env python3
"""Loads `ricci serve` on this machine: many clients at once, slow ones, malformed and oversize
requests, clients that leave, and a stop while requests are under way. Every request must get its
answer, and the right one; memory must stay bounded.

    python3 tests/load/serve_load.py build/ricci tests/data/models/gpt2 [--connections 1000]

It talks to a server of its own on a free port of 127.0.0.1, ends it, and prints one line a part.
"""

import argparse
import asyncio
import json
import re
import signal
import sys
import time

FAILURES = []


def check(holds, what):
    if not holds:
        FAILURES.append(what)
        print("FAILED:", what)


def request(path, body=None, method="POST", fields=()):
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, *fields, "", ""]).encode() + data


async def read_answer(reader):
    """Status, fields and body of one answer; None when the connection ends before."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split()[1])
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        if status == 100:
            return await read_answer(reader)
        if fields.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await reader.readuntil(b"\r\n"), 16):
                body += await reader.readexactly(size)
                await reader.readexactly(2)
            await reader.readexactly(2)
            return status, fields, body
        return status, fields, await reader.readexactly(int(fields["content-length"]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


class Server:
    async def start(self, tool, model, *options):
        self.process = await asyncio.create_subprocess_exec(
            tool, "serve", model, "--port", "0", *options, stdout=asyncio.subprocess.PIPE)
        line = (await self.process.stdout.readline()).decode()
        self.port = int(re.search(r":(\d+)/", line)[1])

    async def open(self):
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, data):
        reader, writer = await self.open()
        try:
            writer.write(data)
            await writer.drain()
            return await read_answer(reader)
        except ConnectionError:
            return None
        finally:
            writer.close()

    async def metrics(self):
        _, _, body = await self.ask(request("/metrics", method="GET"))
        lines = (line.split() for line in body.decode().splitlines())
        return {name.removeprefix("ricci_"): int(value) for name, value in lines}

    def memory(self, field="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(rf"{field}:\s+(\d+)", f.read())[1]) / 1024


def completion(number, **more):
    prompt = [(number * 7 + i) % 40 for i in range(1 + number % 12)]
    return {"prompt": prompt, "max_tokens": 6, "temperature": 0, "stop_tokens": [], **more}


def tokens_of(answer, streamed):
    _, _, body = answer
    if not streamed:
        return json.loads(body)["choices"][0]["tokens"]
    events = [line[6:] for line in body.decode().split("\n\n") if line.startswith("data: ")]
    check(events[-1] == "[DONE]", "a stream ends with [DONE]")
    choices = [json.loads(e)["choices"][0] for e in events[:-1]]
    return [c["token"] for c in choices if "token" in c]


async def until_answered(server, body, turned_away):
    while True:
        answer = await server.ask(request("/v1/completions", body))
        if answer is None:
            return None
        if answer[0] != 503:
            return answer
        turned_away.append(answer[1].get("retry-after"))
        await asyncio.sleep(0.2)


async def many_clients(server, count):
    expected = {}
    for number in range(40):
        answer = await server.ask(request("/v1/completions", completion(number)))
        expected[json.dumps(completion(number)["prompt"])] = tokens_of(answer, False)
    turned_away, started, slowest = [], time.monotonic(), 0.0

    async def client(i):
        nonlocal slowest
        streamed = i % 3 == 0
        body = completion(i % 40, stream=streamed)
        began = time.monotonic()
        answer = await until_answered(server, body, turned_away)
        slowest = max(slowest, time.monotonic() - began)
        check(answer is not None and answer[0] == 200, f"client {i} has an answer")
        if answer is not None and answer[0] == 200:
            wanted = expected[json.dumps(body["prompt"])]
            check(tokens_of(answer, streamed) == wanted, f"client {i} has its own answer")

    # All connections stand before the first request is sent.
    idle = [await server.open() for _ in range(count)]
    await asyncio.gather(*(client(i) for i in range(count)))
    for _, writer in idle:
        writer.close()
    check(all(t == "1" for t in turned_away), "503 says when to come again")
    seconds = time.monotonic() - started
    print(f"{count} clients beside {count} idle connections: all answered in {seconds:.1f} s, "
          f"slowest {slowest:.1f} s, told to come again {len(turned_away)} times, "
          f"{server.memory():.0f} MiB")


async def slow_clients(server, count, pause):
    async def client(i):
        reader, writer = await server.open()
        for byte in request("/v1/completions", completion(i)):
            writer.write(bytes([byte]))
            await asyncio.sleep(pause)
        answer = await read_answer(reader)
        writer.close()
        while answer is not None and answer[0] == 503:
            await asyncio.sleep(0.2)
            answer = await server.ask(request("/v1/completions", completion(i)))
        check(answer is not None and answer[0] == 200, f"slow client {i} has an answer")

    started, waits = time.monotonic(), []

    async def others():
        while True:
            before = time.monotonic()
            answer = await server.ask(request("/health", method="GET"))
            check(answer is not None and answer[0] == 200, "health beside slow clients")
            waits.append(time.monotonic() - before)
            await asyncio.sleep(0.1)

    watch = asyncio.create_task(others())
    await asyncio.gather(*(client(i) for i in range(count)))
    watch.cancel()
    print(f"{count} clients that send byte by byte: all answered in "
          f"{time.monotonic() - started:.1f} s; others waited {max(waits) * 1000:.0f} ms at most")


def chunked(*chunks):
    body = b"".join(f"{len(c):x}\r\n".encode() + c + b"\r\n" for c in chunks)
    head = ("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n")
    return head.encode() + body + b"0\r\n\r\n"


def bad_requests():
    good = json.dumps(completion(1)).encode()
    big = b'{"prompt": "' + b"x" * 3_000_000 + b'"}'
    post = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return [
        (400, b"\x00\x01\x02\x03 nonsense\r\n\r\n"),
        (400, b"GET\r\n\r\n"),
        (400, b"GET /health HTTP/1.1\r\n\r\n"),
        (400, b"GET /health HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n"),
        (404, b"GET http://x/ HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        (505, b"GET /health HTTP/3.0\r\nHost: localhost\r\n\r\n"),
        (431, b"GET /health HTTP/1.1\r\nHost: localhost\r\nA: " + b"y" * 20000 + b"\r\n\r\n"),
        (431, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 200 + b"\r\n"),
        (400, post + b"Content-Length: -1\r\n\r\n"),
        (400, post + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
        (400, post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        (501, post + b"Transfer-Encoding: gzip\r\n\r\n"),
        (417, post + b"Content-Length: 2\r\nExpect: magic\r\n\r\n{}"),
        (413, post + b"Content-Length: 99999999999\r\n\r\n"),
        (413, request("/v1/completions", big)),
        (413, chunked(*[b"x" * 65536] * 40)),
        (400, post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        (400, post + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n"),
        (200, chunked(good[:10], good[10:])),
        (200, request("/v1/completions", completion(1), fields=["Expect: 100-continue"])),
        (404, request("/nowhere", {})),
        (405, request("/v1/completions", method="GET")),
        (415, request("/v1/completions", completion(1)).replace(b"application/json", b"text/plain")),
        *[(400, request("/v1/completions", body)) for body in (
            b"", b"{", b"[]", b"nul", b'{"prompt": [1], "prompt": [2]}', b'{"prompt": [1],}',
            b'{"prompt": "text"}', b'{"prompt": [-1]}', b'{"prompt": [1.5]}', b'{"prompt": []}',
            b'{"prompt": [99999]}', b'{"prompt": [1], "max_tokens": 0}', b"[" * 1000,
            b'{"prompt": [1], "temperature": -1}', b'{"prompt": [1], "top_p": 2}',
            b'{"prompt": [1], "nonsense": 1}', b'{"prompt": [1], "temperature": 1e999}',
            b'\xff\xfe{"prompt": [1]}')],
    ]


async def bad_clients(server, rounds):
    cases = bad_requests()
    for _ in range(rounds):
        answers = await asyncio.gather(*(server.ask(data) for _, data in cases))
        for (wanted, data), answer in zip(cases, answers):
            found = answer and answer[0]
            if wanted == 200 and found == 503:
                continue
            check(found == wanted, f"{wanted} for {data[:60]!r}…, not {found}")
            if found and found >= 400:
                check("message" in json.loads(answer[2])["error"], "an error has a message")
    print(f"{rounds} times {len(cases)} malformed, oversize and odd requests: each has its status, "
          f"{server.memory():.0f} MiB")


async def leaving_clients(server, count):
    async def client(i):
        reader, writer = await server.open()
        writer.write(request("/v1/completions", completion(i, max_tokens=10_000, stream=i % 2 == 0)))
        await writer.drain()
        await asyncio.sleep(0.01 * (i % 7))
        writer.transport.abort()

    await asyncio.gather(*(client(i) for i in range(count)))
    for _ in range(100):
        m = await server.metrics()
        if m["sequences_active"] == 0 and m["queue_waiting"] == 0:
            break
        await asyncio.sleep(0.1)
    check(m["sequences_active"] == 0 and m["queue_waiting"] == 0, "those who left are forgotten")
    check(m["connections_open"] < 10, f"{m['connections_open']} connections are left")
    print(f"{count} clients that leave: nothing is left of them")


async def stop(server, count):
    waiting = []
    for i in range(count):
        reader, writer = await server.open()
        writer.write(request("/v1/completions", completion(i)))
        await writer.drain()
        waiting.append((reader, writer))
    await asyncio.sleep(0.02)
    server.process.send_signal(signal.SIGTERM)
    answers = [await read_answer(reader) for reader, _ in waiting]
    for _, writer in waiting:
        writer.close()
    found = sorted({a[0] if a else None for a in answers}, key=str)
    check(all(a and a[0] in (200, 503) for a in answers), f"a stop loses no request: {found}")
    status = await asyncio.wait_for(server.process.wait(), 60)
    check(status == 0, f"a stop ends with status {status}")
    served = sum(1 for a in answers if a and a[0] == 200)
    print(f"a stop with {count} requests under way: {served} answered, "
          f"{count - served} told to come again, status {status}")


async def run(options):
    server = Server()
    await server.start(options.tool, options.model, "--batch", "8", "--queue", "64")
    before = server.memory()
    try:
        await many_clients(server, options.connections)
        await slow_clients(server, options.slow, options.pause)
        await bad_clients(server, options.rounds)
        await leaving_clients(server, options.leaving)
        m = await server.metrics()
        most = server.memory("VmHWM")
        print(f"memory: {before:.0f} MiB at first, {most:.0f} MiB at most; connections at a time: "
              f"{m['connections_open_most']}; tokens: {m['tokens_total']} in {m['steps_total']} steps")
        check(most < before + options.most_mib, f"memory grew to {most:.0f} MiB")
        await stop(server, 40)
    finally:
        if server.process.returncode is None:
            server.process.kill()
            await server.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("model")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--slow", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.02)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--leaving", type=int, default=200)
    parser.add_argument("--most-mib", type=float, default=400)
    asyncio.run(run(parser.parse_args()))
    print("failures:", len(FAILURES))
    sys.exit(1 if FAILURES else 0)


if __name__ == "__main__":
    main()
