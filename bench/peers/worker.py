"""What the peers have in common: a worker that answers one JSON request a line.

    {"cmd": "variants", "workload": W}
    {"cmd": "prepare", "workload": W, "variant": V, "feeds": PATH, "settings": {}}
    {"cmd": "time", "reps": 5, "inner": 1}
    {"cmd": "outputs", "path": PATH}

A variant is one way to write a workload; the driver keeps the fastest. A peer gives a case for it,
an object with
    reset()    puts the first numbers back
    call()     starts one run; a training step goes on from the state the last one left
    wait()     returns when everything started is done
    outputs()  what the last run gave, as arrays by the names our graphs use
"""

import json
import os
import sys
import time
import traceback

import numpy as np


class Server:
    def __init__(self, peer):
        self.peer = peer
        self.case = None

    def answer(self, request):
        command = request["cmd"]
        if command == "variants":
            return {"variants": self.peer.variants(request["workload"]),
                    "version": self.peer.version()}
        if command == "prepare":
            return self.prepare(request)
        if command == "time":
            return {"times_ms": self.time(request.get("reps", 1), request.get("inner", 1))}
        if command == "outputs":
            self.case.reset()
            self.case.call()
            self.case.wait()
            np.savez(request["path"], **self.case.outputs())
            return {"ok": True}
        return {"error": f"no command is named '{command}'"}

    def prepare(self, request):
        with np.load(request["feeds"]) as archive:
            feeds = {name: archive[name] for name in archive.files}
        self.case = self.peer.make(request["workload"], request["variant"], feeds,
                                   request.get("settings", {}))
        self.case.reset()
        start = time.perf_counter()
        self.case.call()
        self.case.wait()
        return {"variant": request["variant"],
                "first_call_ms": (time.perf_counter() - start) * 1e3}

    def time(self, reps, inner):
        """Milliseconds per call. Calls that may overlap do: only the last of a rep is awaited."""
        case = self.case
        case.reset()
        case.call()
        case.wait()
        times = []
        for _ in range(reps):
            start = time.perf_counter()
            for _ in range(inner):
                case.call()
            case.wait()
            times.append((time.perf_counter() - start) * 1e3 / inner)
        return times


def serve(peer):
    # Libraries print to stdout when they like; the answers keep it for themselves.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    server = Server(peer)
    for line in sys.stdin:
        try:
            reply = server.answer(json.loads(line))
        except Exception as error:  # the driver decides what a failing variant means
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}"[:300]}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


TRAIN_DATA = {"x", "ids", "labels", "target"}


def is_state(name):
    """Is a feed of a training step one of its params, or state of the optimiser?"""
    return name not in TRAIN_DATA


def param_names(feeds):
    return [name for name in feeds
            if is_state(name) and name != "step" and not name.startswith(("m.", "v."))]
