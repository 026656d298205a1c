#!/usr/bin/env python3
"""Measures the workloads on an NVIDIA GPU: ours against JAX and PyTorch, in one run on one card.

Every system runs in a process of its own, fresh for each workload, so a first call finds no cache;
then they take turns, and medians are compared.

    bench/cuda/run.py                              everything; writes bench/results_cuda.json
    bench/cuda/run.py --workloads mlp_train:tf32   a part, which is printed and not written
    bench/cuda/run.py --peers none                 ours alone
    bench/cuda/run.py --peers none --device lir --small   tries the driver without a GPU
    bench/cuda/run.py --check                      compares results; times nothing
    bench/cuda/run.py --against FILE               what changed since an earlier results_cuda.json
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import report  # noqa: E402
import run_bench  # noqa: E402
from run_bench import Contender, Worker, fastest_variant  # noqa: E402

RUNNER = ROOT / "build/release/ricci_bench_cuda"
RESULTS = ROOT / "bench/results_cuda.json"
BEGIN, END = "<!-- bench-cuda:begin -->", "<!-- bench-cuda:end -->"
WORKLOADS = ["gpt_train:bf16", "mlp_train", "mlp_train:tf32", "cnn_train", "fused_rows_fwd",
             "scan_fwd", "scan_grad", "selective_scan_grad", "mlp_hvp"]
TOLERANCE = {"f32": 2e-4, "tf32": 2e-2, "bf16": 6e-2}  # of the largest element, between systems
HEADINGS = ["workload", "ours ms", "host µs", "best peer", "its ms", "ratio", "first call ms",
            "its first call ms", "ratio", "peak MiB"]


def split(workload):
    name, _, precision = workload.partition(":")
    return name, precision or "f32"


def prepare_ours(workload, log, cache=""):
    worker = Worker("ours", log)
    reply = worker.ask(cmd="prepare", workload=workload, code_cache=cache)
    if "error" in reply:
        worker.close()
        raise RuntimeError(f"{workload}: {reply['error']}")
    contender = Contender(worker, reply["variant"], reply["first_call_ms"], reply["peak_bytes"],
                          reply["compile_ms"])
    contender.served = reply["served"]
    return contender


def write_feeds(workload, folder, log):
    worker = Worker("ours", log)
    path = str(folder / f"{workload.replace(':', '_')}.npz")
    reply = worker.ask(cmd="feeds", workload=workload, path=path)
    worker.close()
    if "error" in reply:
        raise RuntimeError(f"{workload}: {reply['error']}")
    return path, reply["settings"] | {"precision": split(workload)[1]}


def peers_of(workload, peers, feeds, settings, log):
    for system in peers:
        found = run_bench.prepare_peer(system, split(workload)[0], feeds, settings, log)
        yield system, found


def host_us(contender):
    contender.worker.wake()
    reply = contender.worker.ask(cmd="host", runs=100)
    contender.worker.rest()
    return 1e3 * reply["host_ms"] if "host_ms" in reply else None


def warm_call_ms(workload, folder, log):
    """The first call of a second process, whose code is kept from the first."""
    cache = str(folder / "code")
    for _ in range(2):
        contender = prepare_ours(workload, log, cache)
        contender.worker.close()
    return contender.first_call_ms


def measure(workload, peers, options, folder, log):
    print(workload, flush=True)
    ours = fastest_variant([prepare_ours(workload, log)])
    contenders = [ours]
    feeds, settings = write_feeds(workload, folder, log) if peers else (None, {})
    for _, found in peers_of(workload, peers, feeds, settings, log):
        contenders.append(fastest_variant(found))
    contenders = [c for c in contenders if c]
    for _ in range(options.rounds):
        for contender in contenders:
            contender.turn()
    row = row_of(workload, ours, [c for c in contenders if c is not ours])
    for contender in contenders:
        print(f"  {contender.label:44} {contender.median:12.4f} ms, median of turns from "
              f"{min(contender.medians):.4f} to {max(contender.medians):.4f}", flush=True)
    row["host_us"] = host_us(ours)
    for contender in contenders:
        contender.worker.close()
    row["warm_first_call_ms"] = warm_call_ms(workload, folder, log)
    if feeds:
        os.unlink(feeds)
    return row


def row_of(workload, ours, peers):
    best = min(peers, key=lambda c: c.median, default=None)
    quickest = min(peers, key=lambda c: c.first_call_ms, default=None)
    return {
        "workload": workload,
        "ours_ms": ours.median,
        "turns_ms": ours.medians,
        "served": ours.served,
        "best_peer": best and best.label,
        "best_peer_ms": best and best.median,
        "ratio": best.median / ours.median if best else None,
        "first_call_ms": ours.first_call_ms,
        "compile_ms": ours.compile_alone_ms,
        "peers": [{"peer": c.label, "ms": c.median, "first_call_ms": c.first_call_ms}
                  for c in peers],
        "peer_first_call_ms": quickest and quickest.first_call_ms,
        "peak_bytes": ours.peak_bytes,
    }


def cells(row):
    number, ratio = report.number, report.ratio
    return [row["workload"], number(row["ours_ms"]), number(row["host_us"]),
            row["best_peer"] or "-", number(row["best_peer_ms"]), number(row["ratio"]),
            number(row["first_call_ms"]), number(row["peer_first_call_ms"]),
            number(ratio(row["peer_first_call_ms"], row["first_call_ms"])),
            number(row["peak_bytes"] / 2**20)]


def footnotes(results):
    machine = results["machine"]
    parts = [machine.get("gpu") or machine["device"], machine["date"]]
    parts += [machine[s] for s in ("torch", "jax") if machine.get(s)]
    warm = [f"{r['workload']} {r['warm_first_call_ms']:.0f} ms" for r in results["workloads"]]
    return [", ".join(parts), "first calls whose code is kept: " + ", ".join(warm)]


def print_table(results):
    table = [HEADINGS] + [cells(row) for row in results["workloads"]]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
    print()
    for line in table:
        print("  ".join(c.ljust(w) if i in (0, 3) else c.rjust(w)
                        for i, (c, w) in enumerate(zip(line, widths))))
    print(*footnotes(results), sep="\n")


def markdown(results):
    lines = [HEADINGS, ["---"] * len(HEADINGS)] + [cells(row) for row in results["workloads"]]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return table + "\n\n" + "; ".join(footnotes(results)) + "."


def print_changes(results, path):
    """What is faster and slower than in an earlier run."""
    before = {row["workload"]: row for row in json.loads(Path(path).read_text())["workloads"]}
    print(f"\nsince {path}:")
    for row in results["workloads"]:
        old = before.get(row["workload"])
        if old:
            print(f"  {row['workload']:22} {old['ours_ms']:10.4f} ms -> {row['ours_ms']:10.4f} ms, "
                  f"{old['ours_ms'] / row['ours_ms']:.2f} times as fast")


def machine(options, peers, log):
    worker = Worker("ours", log)
    about = worker.ask(cmd="about")
    worker.close()
    if "error" in about:
        message = Path(log.name).read_text().strip().splitlines()
        sys.exit(f"bench: {message[-1] if message else about['error']}")
    info = {"device": about["device"], "date": datetime.date.today().isoformat()}
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True) if options.device == "cuda" else None
    if asked and asked.returncode == 0:
        info["gpu"] = asked.stdout.strip().splitlines()[0]
    for system in peers:
        worker = Worker(system, log)
        info[system] = worker.ask(cmd="variants", workload="tiny_call").get("version")
        worker.close()
    return info


def check(workloads, peers, folder, log):
    failures = 0
    for workload in workloads:
        feeds, settings = write_feeds(workload, folder, log)
        ours = prepare_ours(workload, log)
        mine = str(folder / "ours.npz")
        ours.worker.ask(cmd="outputs", path=mine)
        ours.worker.close()
        if not peers:
            print(f"{workload:22} runs", flush=True)
        for _, found in peers_of(workload, peers, feeds, settings, log):
            for contender in found:
                theirs = str(folder / "theirs.npz")
                contender.worker.ask(cmd="outputs", path=theirs)
                contender.worker.close()
                done = subprocess.run(
                    [run_bench.PYTHON, ROOT / "bench/peers/compare.py", mine, theirs,
                     str(TOLERANCE[settings["precision"]])], capture_output=True, text=True)
                failures += done.returncode != 0
                print(f"{workload:22} {contender.label:44} {done.stdout.strip()}", flush=True)
        os.unlink(feeds)
    return failures


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", help="names, separated by commas; all when absent")
    parser.add_argument("--peers", default="torch,jax", help="which peers, or none (default both)")
    parser.add_argument("--rounds", type=int, default=5, help="turns each system has (default 5)")
    parser.add_argument("--device", default="cuda", help="ours runs there (default cuda)")
    parser.add_argument("--small", action="store_true", help="small sizes, to try the driver")
    parser.add_argument("--check", action="store_true", help="compare results; time nothing")
    parser.add_argument("--against", help="an earlier results_cuda.json to compare with")
    parser.add_argument("--out", help="where to write the results, whatever was measured")
    parser.add_argument("--runner", default=str(RUNNER), help="our side, built elsewhere")
    parser.add_argument("--python", help="a Python that has the peers, instead of an environment")
    parser.add_argument("--update-readme", action="store_true", help="the table in README.md")
    return parser.parse_args()


def main():
    options = parse_options()
    if not Path(options.runner).exists():
        sys.exit("bench: build the target ricci_bench_cuda first (make bench-cuda does)")
    run_bench.OURS = [options.runner, "--serve", "--device", options.device]
    run_bench.OURS += ["--small"] if options.small else []
    if options.python:
        run_bench.PYTHON = Path(options.python)
    os.environ["RICCI_PEER_DEVICE"] = "cuda" if options.device == "cuda" else "cpu"
    workloads = options.workloads.split(",") if options.workloads else WORKLOADS
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, open(ROOT / "build/bench-cuda.log", "w") as log:
        folder = Path(name)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
        machine(options, [], log)  # says it when there is no GPU, before anything is installed
        peers = [p for p in options.peers.split(",") if p not in ("", "none")]
        peers = peers if options.python else run_bench.install_peers(peers)
        if options.check:
            sys.exit(1 if check(workloads, peers, folder, log) else 0)
        results = {"machine": machine(options, peers, log),
                   "workloads": [measure(w, peers, options, folder, log) for w in workloads]}
    print_table(results)
    whole = not (options.workloads or options.small or options.device != "cuda")
    if options.out or (whole and peers):
        report.write_results(results, Path(options.out) if options.out else RESULTS)
    if options.against:
        print_changes(results, options.against)
    if options.update_readme:
        report.update_readme(results, BEGIN, END, markdown)


if __name__ == "__main__":
    try:
        main()
    finally:
        for worker in list(Worker.alive):
            worker.process.kill()  # one that rests would not hear anything else
