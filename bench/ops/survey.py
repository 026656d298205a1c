#!/usr/bin/env python3
"""The survey: every op and its gradient, and programs, against JAX and PyTorch in turns.

    bench/ops/survey.py                       every op; writes bench/ops.json and the heat map
    bench/ops/survey.py --set programs        the programs; writes bench/programs.json
    bench/ops/survey.py --filter 'scatter|sort' --classes 'cache,short rows' --quick
    bench/ops/survey.py --check               compare values, time nothing

Each system is one process, stopped while it is not its turn. A case is prepared in all of them,
its values are compared, then the systems take turns; medians of turns are compared. A ratio is the
best peer's time over ours: above 1 we are faster.
"""

import argparse
import datetime
import json
import os
import random
import re
import select
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "peers")]

import catalogue
import coverage
import table
from run_bench import PYTHON, ROOT, RUNNER, Worker, install_peers, machine

ISA = "ONEDNN_MAX_CPU_ISA"
ANSWER_S = 120  # a process that says nothing for so long is ended
SHORTEST_REP_MS = 0.3  # a shorter call is repeated within one measurement


class System(Worker):
    """A process that prepares one case after the other, and is replaced when it dies."""

    def __init__(self, name, log):
        super().__init__(name, log, [str(HERE / "peer.py"), name])

    @property
    def ended(self):
        return self.process.poll() is not None

    def ask(self, **request):
        self.wake()
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_S)
            line = self.process.stdout.readline() if ready else ""
        except BrokenPipeError:
            line = ""
        if not line:
            self.process.kill()
            self.process.wait()
            return {"error": "the process ended or gave no answer"}
        self.rest()
        return json.loads(line)


class Survey:
    def __init__(self, options, peers, folder, log):
        self.options, self.folder, self.log = options, folder, log
        self.systems = {name: System(name, log) for name in ["ours", *peers]}

    def system(self, name):
        if self.systems[name].ended:
            Worker.alive.remove(self.systems[name])
            self.systems[name] = System(name, self.log)
        return self.systems[name]

    def feeds(self, one):
        """Writes the numbers of a case, with a cotangent where it needs one."""
        import numpy as np
        arrays = one.arrays()
        if one.seeded:
            types = self.system("ours").ask(cmd="types_of_text", text=one.text,
                                            transforms=one.all_transforms)
            if "error" in types:
                raise RuntimeError(types["error"].splitlines()[0])
            seed = catalogue.cases.Feed(tuple(types["inputs"]["d_output"]["shape"]),
                                        types["inputs"]["d_output"]["dtype"])
            arrays["d_output"] = seed.array(np.random.default_rng(7))
        path = str(self.folder / "feeds.npz")
        np.savez(path, **arrays)
        return path

    def prepare_in(self, name, one, feeds):
        if name == "ours":
            return self.system(name).ask(cmd="prepare_text", text=one.text, feeds=feeds,
                                         transforms=one.all_transforms)
        variant = "compile" if self.options.torch_compile else "eager"
        return self.system(name).ask(cmd="prepare", workload=one.id, feeds=feeds, variant=variant)

    def prepare(self, one, feeds):
        """Makes every system ready; gives those that are, and what stops the others."""
        ready, faults, first_ms = [], {}, {}
        for name in self.systems:
            if name != "ours" and getattr(one, name) is None:
                continue
            reply = self.prepare_in(name, one, feeds)
            if self.systems[name].ended and name == "torch" and ISA not in os.environ:
                # A machine may announce instructions that it does not let programs use.
                os.environ[ISA] = "AVX512_CORE_BF16"
                reply = self.prepare_in(name, one, feeds)
            if "error" in reply:
                faults[name] = reply["error"].splitlines()[0][:200]
            else:
                ready.append(name)
                first_ms[name] = reply["first_call_ms"]
        return ready, faults, first_ms

    def gaps(self, one, ready):
        """The largest difference between our results and each peer's, relative to the largest."""
        import numpy as np
        from compare import gap
        found, ours = {}, None
        for name in ready:
            path = str(self.folder / f"{name}.npz")
            reply = self.system(name).ask(cmd="outputs", path=path)
            if "error" in reply:
                found[name] = reply["error"]
                continue
            with np.load(path) as archive:
                arrays = [archive[str(i)] for i in range(len(archive.files))]
            if ours is None:
                ours = arrays
                continue
            found[name] = float("inf") if len(arrays) != len(ours) else max(
                gap("", a, b.reshape(a.shape) if a.size == b.size else b)
                for a, b in zip(ours, arrays))
        return found

    def times(self, name, reps, inner):
        reply = self.system(name).ask(cmd="time", reps=reps, inner=inner)
        if "error" in reply:
            raise RuntimeError(f"{name}: {reply['error']}")
        return statistics.median(reply["times_ms"])

    def turns(self, ready):
        """Medians of each system's turns."""
        pace, medians = {}, {name: [] for name in ready}
        for name in ready:
            once = max(self.times(name, 3, 1), 1e-4)
            inner = max(1, int(SHORTEST_REP_MS / once))
            reps = max(1, min(30, int(self.options.turn_ms / (once * inner))))
            pace[name] = (reps, inner)
        for _ in range(self.options.rounds):
            for name in ready:
                medians[name].append(self.times(name, *pace[name]))
        return medians

    def measure(self, one):
        row = {"id": one.id, "op": one.op, "member": one.member, "class": one.shape_class,
               "gradient": one.gradient}
        try:
            feeds = self.feeds(one)
            ready, faults, first_ms = self.prepare(one, feeds)
            if faults:
                row["faults"] = faults
            if "ours" not in ready:
                return row
            row["gaps"] = self.gaps(one, ready) if one.compare else {}
            wrong = [n for n, g in row["gaps"].items()
                     if isinstance(g, str) or not g <= one.allowed_gap]
            if wrong:
                row["differs_from"] = wrong
            if self.options.check:
                return row
            medians = self.turns(ready)
        except RuntimeError as error:
            row["faults"] = {"ours": str(error)}
            return row
        row |= {f"{name}_ms": statistics.median(m) for name, m in medians.items()}
        row["first_call_ms"] = first_ms["ours"]
        peers = [n for n in ready if n != "ours"]
        if peers:
            best = min(peers, key=lambda n: row[f"{n}_ms"])
            spread = lambda m: (max(m) - min(m)) / statistics.median(m)
            row |= {"best_peer": best, "ratio": row[f"{best}_ms"] / row["ours_ms"],
                    "noise": max(spread(medians["ours"]), spread(medians[best]))}
        return row

    def close(self):
        for system in self.systems.values():
            system.process.kill()
            system.process.wait()
            Worker.alive.remove(system)


class OtherWork:
    """The share of the machine's time that processes other than ours took."""

    def __init__(self):
        self.before = self.busy_and_total()

    @staticmethod
    def busy_and_total():
        numbers = [int(n) for n in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        idle = numbers[3] + numbers[4]
        return sum(numbers) - idle, sum(numbers)

    def share(self, systems):
        busy, total = (b - a for a, b in zip(self.before, self.busy_and_total()))
        own = sum(os.times()[:2]) * os.sysconf("SC_CLK_TCK")
        for system in systems:
            try:
                fields = Path(f"/proc/{system.process.pid}/stat").read_text().rsplit(")")[1].split()
                own += int(fields[11]) + int(fields[12])
            except OSError:
                pass  # one that was replaced; what it took counts as foreign
        return max(0.0, (busy - own) / max(total, 1))


def selected(options):
    every = catalogue.of_ops() if options.set == "ops" else catalogue.of_programs()
    classes = options.classes and set(options.classes.split(","))
    chosen = [c for c in every if re.search(options.filter, c.id)
              and (not classes or c.shape_class in classes)
              and not (options.no_gradients and c.gradient)]
    chosen = chosen[::options.every]
    if options.minutes:  # what there is no time for should be some of everything
        random.Random(1).shuffle(chosen)
    return chosen


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=["ops", "programs"], default="ops")
    parser.add_argument("--filter", default="", help="a regular expression the case's name matches")
    parser.add_argument("--classes", help="shape classes, separated by commas; all when absent")
    parser.add_argument("--every", type=int, default=1, help="every n-th case only")
    parser.add_argument("--no-gradients", action="store_true", help="values only")
    parser.add_argument("--rounds", type=int, default=5, help="turns each system has (default 5)")
    parser.add_argument("--turn-ms", type=float, default=30, help="length of a turn (default 30)")
    parser.add_argument("--minutes", type=float,
                        help="stop after so long; the rest is not measured")
    parser.add_argument("--quick", action="store_true", help="three short turns")
    parser.add_argument("--threads", type=int, help="cores all systems are bound to (default all)")
    parser.add_argument("--peers", default="jax,torch", help="which peers (default jax,torch)")
    parser.add_argument("--torch-compile", action="store_true", help="PyTorch through its compiler")
    parser.add_argument("--against", type=Path, help="an earlier run's file, to say what changed")
    parser.add_argument("--check", action="store_true", help="compare values; time nothing")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--print", metavar="NAME", help="print the text of a case")
    parser.add_argument("--out", type=Path, help="where results go (default: bench/ops.json or "
                        "bench/programs.json after a whole run, else nowhere)")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.turn_ms = 3, 10
    options.whole = not (options.filter or options.classes or options.every > 1
                         or options.no_gradients or options.check or options.quick)
    if options.whole and not options.out:
        options.out = ROOT / f"bench/{options.set}.json"
    return options


def run(options, peers):
    others, deadline = OtherWork(), time.monotonic() + 60 * (options.minutes or 1e9)
    shared = Path("/dev/shm")
    place = shared if shared.is_dir() and os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as name, open(ROOT / "build/bench.log", "w") as log:
        about = machine([], log)
        survey = Survey(options, peers, Path(name), log)
        for peer in peers:
            about[peer] = survey.system(peer).ask(cmd="variants",
                                                  workload="unary.tanh/cache").get("version")
        rows, chosen = [], selected(options)
        for one in chosen:
            if time.monotonic() > deadline:
                break
            rows.append(survey.measure(one))
            print(table.line(rows[-1]), flush=True)
        about["other_work"] = round(others.share(survey.systems.values()), 3)
        about["cores_used"] = options.threads or os.cpu_count()
        about["rounds"] = options.rounds
        if ISA in os.environ:
            about["torch_limited_to"] = os.environ[ISA]
        about["finished"] = datetime.datetime.now().isoformat(" ", "minutes")
        survey.close()
    measured = {row["id"] for row in rows}
    return {"machine": about, "cases": rows,
            "not_measured": [c.id for c in chosen if c.id not in measured],
            "not_surveyed": coverage.faults() if options.set == "ops" else []}


def main():
    options = parse_options()
    if options.list:
        print(*[c.id for c in selected(options)], sep="\n")
        return 0
    if options.print:
        print(catalogue.case_named(options.print).text, end="")
        return 0
    if not RUNNER.exists():
        sys.exit("bench: build the target ricci_bench_runner first (make bench-ops does)")
    peers = install_peers(options.peers.split(",")) if options.peers else []
    if Path(sys.executable) != PYTHON:  # which has NumPy
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    if options.threads:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    before = json.loads(options.against.read_text()) if options.against else None
    results = run(options, peers)
    table.print_results(results)
    if before:
        table.print_changes(results, before)
    if options.out:
        options.out.write_text(table.to_json(results))
    if options.check:
        return status(results)
    heat_map = ROOT / f"build/bench-{options.set}.html"
    heat_map.write_text(table.html(results, options.set))
    print(f"the heat map is {heat_map.relative_to(ROOT)}")
    return status(results)


def status(results):
    return 1 if any("differs_from" in row for row in results["cases"]) else 0


if __name__ == "__main__":
    # Told to end, it ends its processes too: one that rests would stay for ever.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    finally:
        for worker in list(Worker.alive):
            worker.process.kill()
