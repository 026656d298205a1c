#!/usr/bin/env python3
"""Measures the workloads: ours against JAX, PyTorch and SciPy, in one run on one machine.

Every system runs in a process of its own. For each workload the processes are fresh, so a first call
finds no cache; then they take turns in short rounds, so that a drift of the machine's speed meets
all of them. Medians are compared.

    bench/run_bench.py                          everything; writes bench/results.json
    bench/run_bench.py --workloads mlp_train,scan_fwd --rounds 3
    bench/run_bench.py --only-ours              without the peers
    bench/run_bench.py --check                  compare results at small sizes; time nothing
"""

import argparse
import datetime
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from report import README, print_table, update_readme, write_results

ROOT = Path(__file__).resolve().parent.parent
RUNNER = ROOT / "build/release/ricci_bench_runner"
ENVIRONMENT = ROOT / "build/bench-venv"
PYTHON = ENVIRONMENT / "bin/python"
RESULTS = ROOT / "bench/results.json"
OURS = [str(RUNNER)]
PEERS = {"jax": ["jax", "numpy"], "torch": ["torch", "numpy"], "scipy": ["scipy", "numpy"]}

MEMORY_BOUND = {"fused_rows_fwd"}  # compared with copying memory, which takes turns with them
# Compared with a workload of our own: the same product in f32.
IN_F32 = {"q4_k_row": "f32_row", "q4_k_rows": "f32_rows", "int8_row": "f32_row",
          "int8_rows": "f32_rows", "q4_k_experts": "f32_experts", "code_row": "f32_row",
          "code_rows": "f32_rows", "q4_k_int8_row": "f32_row"}
TURN_MS = 500  # how long a system works before the next has its turn
SHORTEST_REP_MS = 2.0  # a shorter call is repeated within one measurement
CURVE_LAYERS = [1, 2, 4, 8, 12, 24]
TOLERANCE = 2e-5  # of the largest element, between two systems' f32 results


class Worker:
    """A process that answers requests, one JSON object a line."""

    alive = []  # to be ended with the benchmark, however it ends

    def __init__(self, system, log, peer=None):
        """A peer is a script and its arguments; absent, the one of the workloads."""
        self.system = system
        Worker.alive.append(self)
        command = OURS if system == "ours" else [
            str(PYTHON), *(peer or [str(ROOT / f"bench/peers/{system}_peer.py")])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=log, text=True)

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": "the process ended"}

    def rest(self):
        """Stops the process until `wake`: threads that wait by spinning would slow the others."""
        self.process.send_signal(signal.SIGSTOP)

    def wake(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        Worker.alive.remove(self)
        self.wake()
        self.process.stdin.close()
        self.process.wait()


class Contender:
    """One system's variant of a workload, prepared in a process of its own."""

    def __init__(self, worker, variant, first_call_ms, peak_bytes=0, compile_alone_ms=None):
        self.worker, self.variant = worker, variant
        self.first_call_ms, self.peak_bytes = first_call_ms, peak_bytes
        self.compile_alone_ms = compile_alone_ms
        self.medians, self.reps, self.inner = [], 1, 1
        self.system = worker.system

    @property
    def label(self):
        return self.system if self.system == "ours" else f"{self.system} ({self.variant})"

    @property
    def median(self):
        return statistics.median(self.medians)

    def pace(self):
        """Decides how many calls make a turn; gives the time of a call."""
        once = self.times(1, 1)
        # The first calls are slower than what follows, and variants are chosen by this time.
        once = self.times(max(3, min(50, int(TURN_MS / max(once, 1e-4)))), 1)
        self.inner = max(1, int(SHORTEST_REP_MS / max(once, 1e-4)))
        self.reps = max(3, min(50, int(TURN_MS / max(once * self.inner, SHORTEST_REP_MS))))
        return once

    def turn(self):
        self.medians.append(self.times(self.reps, self.inner))

    def times(self, reps, inner):
        """The median of some measurements."""
        self.worker.wake()
        reply = self.worker.ask(cmd="time", reps=reps, inner=inner)
        self.worker.rest()
        if "error" in reply:
            raise RuntimeError(f"{self.label}: {reply['error']}")
        return statistics.median(reply["times_ms"])


class Copying:
    """How fast memory is copied, measured in turns with a workload that is compared with it."""

    def __init__(self, log):
        self.worker, self.rates = Worker("ours", log), []

    def turn(self):
        self.worker.wake()
        self.rates.append(self.worker.ask(cmd="bandwidth")["bytes_per_second"])
        self.worker.rest()

    def close(self):
        self.worker.close()
        return statistics.median(self.rates)


def install_peers(wanted):
    """A private environment with those of the peers that can be had; gives their names."""
    if not PYTHON.exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)])
        if made.returncode != 0:
            print("bench: no environment for the peers (Debian: apt-get install python3-venv); "
                  "going on without them")
            return []
    found = []
    for peer in wanted:
        importable = lambda: subprocess.run([PYTHON, "-c", f"import {peer}"],
                                            capture_output=True).returncode == 0
        if not importable():
            print(f"bench: installing {peer}", flush=True)
            subprocess.run([PYTHON, "-m", "pip", "install", "-q", *PEERS[peer]])
        if importable():
            found.append(peer)
        else:
            print(f"bench: {peer} cannot be installed here; going on without it")
    return found


def prepare_ours(workload, scale, log):
    worker = Worker("ours", log)
    reply = worker.ask(cmd="prepare", workload=workload, scale=scale)
    if "error" in reply:
        worker.close()
        raise RuntimeError(f"ours: {reply['error']}")
    return Contender(worker, reply["variant"], reply["first_call_ms"], reply["peak_bytes"],
                     reply["compile_ms"])


def prepare_peer(system, workload, feeds, settings, log):
    """Every variant of a peer, each in a fresh process."""
    asker = Worker(system, log)
    variants = asker.ask(cmd="variants", workload=workload).get("variants", [])
    asker.close()
    for variant in variants:
        worker = Worker(system, log)
        reply = worker.ask(cmd="prepare", workload=workload, variant=variant, feeds=feeds,
                           settings=settings)
        if "error" in reply:
            print(f"bench: {workload}: {system} ({variant}) left out: {reply['error']}")
            worker.close()
            continue
        yield Contender(worker, variant, reply["first_call_ms"])


def fastest_variant(contenders):
    """Keeps the contender whose calls are quickest and ends the others."""
    best, best_ms = None, float("inf")
    for contender in contenders:
        once = contender.pace()
        print(f"  {contender.label:34} {once:12.4f} ms, first call "
              f"{contender.first_call_ms:10.1f} ms", flush=True)
        if once < best_ms:
            best, best_ms, loser = contender, once, best
        else:
            loser = contender
        if loser:
            loser.worker.close()
    return best


def write_feeds(workload, scale, folder, log):
    worker = Worker("ours", log)
    path = str(folder / f"{workload}.npz")
    reply = worker.ask(cmd="feeds", workload=workload, scale=scale, path=path)
    worker.close()
    return path, reply["settings"]


def measure(workload, peers, options, folder, log):
    """All systems' times of one workload, as a line of the results."""
    print(workload, flush=True)
    feeds, settings = write_feeds(workload, "full", folder, log) if peers else (None, None)
    contenders = []
    if not options.only_peers:
        contenders.append(fastest_variant([prepare_ours(workload, "full", log)]))
    if workload in IN_F32:
        plain = prepare_ours(IN_F32[workload], "full", log)
        plain.system, plain.variant = "ours in f32", IN_F32[workload]
        contenders.append(fastest_variant([plain]))
    for system in peers if workload not in IN_F32 else []:
        contenders.append(
            fastest_variant(prepare_peer(system, workload, feeds, settings, log)))
    contenders = [c for c in contenders if c]
    copying = Copying(log) if workload in MEMORY_BOUND else None
    for _ in range(options.rounds):
        for contender in contenders:
            contender.turn()
        if copying:
            copying.turn()
    copy_rate = copying.close() if copying else None
    for contender in contenders:
        print(f"  {contender.label:34} {contender.median:12.4f} ms, median of turns "
              f"from {min(contender.medians):.4f} to {max(contender.medians):.4f}", flush=True)
        contender.worker.close()
    if feeds:
        os.unlink(feeds)
    return row_of(workload, contenders, copy_rate)


def row_of(workload, contenders, copy_rate):
    """A line of the results."""
    ours = next((c for c in contenders if c.system == "ours"), None)
    peers = [c for c in contenders if c.system != "ours"]
    best = min(peers, key=lambda c: c.median, default=None)
    # Compile times are compared with JAX's, which compiles always; another's when it is missing.
    compiler = next((c for c in peers if c.system == "jax"), best)
    row = {
        "workload": workload,
        "ours_ms": ours and ours.median,
        "best_peer": best and best.label,
        "best_peer_ms": best and best.median,
        "ratio": best.median / ours.median if ours and best else None,
        "compile_ms": ours and ours.first_call_ms,
        "peer_first_call_ms": compiler and compiler.first_call_ms,
        "peak_bytes": ours and ours.peak_bytes,
        "compile_alone_ms": ours and ours.compile_alone_ms,
    }
    if copy_rate:
        row["copy_bytes_per_second"] = copy_rate
    return row


def machine(peers, log):
    info = {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count(),
            "date": datetime.date.today().isoformat()}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        info["cpu"] = next(x.split(":", 1)[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        pass
    worker = Worker("ours", log)
    info["copy_bytes_per_second"] = worker.ask(cmd="bandwidth")["bytes_per_second"]
    worker.close()
    for system in peers:
        worker = Worker(system, log)
        info[system] = worker.ask(cmd="variants", workload="tiny_call").get("version")
        worker.close()
    return info


def compile_curve(log):
    """Compile time against the size of the program: GPT-2's training step with more and more
    layers, on one core, each in a fresh process."""
    curve = []
    for layers in CURVE_LAYERS:
        worker = Worker("ours", log)
        reply = worker.ask(cmd="compile_gpt2", layers=layers)
        worker.close()
        if "error" in reply:
            raise RuntimeError(f"ours: {reply['error']}")
        curve.append({"layers": layers, **reply})
        print(f"  {layers:2} layers: {reply['nodes']:6} nodes {reply['compile_ms']:8.1f} ms",
              flush=True)
    return curve


def check(workloads, peers, folder, log):
    """Our results against every variant of the peers, on the same numbers at small sizes."""
    script = ROOT / "bench/peers/compare.py"
    failures = 0
    for workload in workloads:
        feeds, settings = write_feeds(workload, "small", folder, log)
        ours = prepare_ours(workload, "small", log)
        mine = str(folder / "ours.npz")
        ours.worker.ask(cmd="outputs", path=mine)
        ours.worker.close()
        for system in peers:
            for contender in prepare_peer(system, workload, feeds, settings, log):
                theirs = str(folder / "theirs.npz")
                contender.worker.ask(cmd="outputs", path=theirs)
                contender.worker.close()
                done = subprocess.run([PYTHON, script, mine, theirs, str(TOLERANCE)],
                                      capture_output=True, text=True)
                failures += done.returncode != 0
                print(f"{workload:16} {contender.label:32} {done.stdout.strip()}", flush=True)
    return failures


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", help="names, separated by commas; all when absent")
    parser.add_argument("--rounds", type=int, default=9, help="turns each system has (default 9)")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    parser.add_argument("--only-ours", action="store_true", help="without the peers")
    parser.add_argument("--only-peers", action="store_true", help="the peers alone")
    parser.add_argument("--peers", default=",".join(PEERS), help="which peers (default all)")
    parser.add_argument("--check", action="store_true", help="compare results; time nothing")
    parser.add_argument("--note", help="what else there is to say of the machine, such as other work")
    parser.add_argument("--update-readme", action="store_true", help=f"the table in {README.name}")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 3
    return options


def main():
    options = parse_options()
    if not RUNNER.exists():
        sys.exit("bench: build the target ricci_bench_runner first (make bench does)")
    peers = [] if options.only_ours else install_peers(options.peers.split(","))
    with tempfile.TemporaryDirectory() as name, open(ROOT / "build/bench.log", "w") as log:
        folder = Path(name)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        worker = Worker("ours", log)
        known = worker.ask(cmd="list")["workloads"]
        worker.close()
        workloads = options.workloads.split(",") if options.workloads else known
        unknown = sorted(set(workloads) - set(known))
        if unknown:
            sys.exit(f"bench: no workload is named {', '.join(unknown)}")
        if options.check:
            sys.exit(1 if check(workloads, peers, folder, log) else 0)
        results = {"machine": machine(peers, log), "workloads": []}
        if options.note:
            results["machine"]["note"] = options.note
        for workload in workloads:
            results["workloads"].append(measure(workload, peers, options, folder, log))
        if not options.workloads and not options.only_peers:
            print("compiling GPT-2's training step on one core", flush=True)
            results["compile_curve"] = compile_curve(log)
    print_table(results)
    # Part of a run must not replace the table of a whole one.
    if not (options.only_ours or options.only_peers or options.workloads):
        write_results(results, RESULTS)
    if options.update_readme:
        update_readme(results)


if __name__ == "__main__":
    try:
        main()
    finally:
        for worker in list(Worker.alive):
            worker.process.kill()  # one that rests would not hear anything else
