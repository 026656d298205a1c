"""The benchmark's results as a table, as a file and in the README."""

import json
import math
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
FUSED_ROWS_BYTES = 2 * 4096 * 1024 * 4  # fused_rows_fwd reads and writes one matrix

HEADINGS = ["workload", "ours ms", "best peer", "its ms", "ratio", "compile ms",
            "JAX first call ms", "ratio", "peak MiB"]


def number(value):
    if value is None:
        return "-"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(digits, 5)}f}"


def ratio(a, b):
    return a / b if a and b else None


def geometric_mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def cells(row):
    peak = row["peak_bytes"]
    return [row["workload"], number(row["ours_ms"]), row["best_peer"] or "-",
            number(row["best_peer_ms"]), number(row["ratio"]), number(row["compile_ms"]),
            number(row["peer_first_call_ms"]),
            number(ratio(row["peer_first_call_ms"], row["compile_ms"])),
            number(peak / 2**20) if peak else "-"]


def summary(results):
    """The last row of the table: geometric means of the ratios."""
    rows = results["workloads"]
    speed = geometric_mean([r["ratio"] for r in rows])
    compiling = geometric_mean([ratio(r["peer_first_call_ms"], r["compile_ms"]) for r in rows])
    return ["geometric mean", "", "", "", number(speed), "", "", number(compiling), ""]


def footnotes(results):
    machine = results["machine"]
    bandwidth = machine["copy_bytes_per_second"]
    names = [machine[s] for s in ("jax", "torch", "scipy") if machine.get(s)]
    notes = [f"{machine['cpu']}, {machine['cores']} cores, {machine['date']}"
             + (f"; {', '.join(names)}" if names else "")
             + (f"; {machine['note']}" if machine.get("note") else ""),
             f"copying memory: {bandwidth / 1e9:.1f} GB/s read and written"]
    for row in results["workloads"]:
        if row["workload"] == "fused_rows_fwd" and row["ours_ms"]:
            beside = row.get("copy_bytes_per_second", bandwidth)
            share = FUSED_ROWS_BYTES / (row["ours_ms"] * 1e-3) / beside
            notes.append(f"fused_rows_fwd: {share:.3f} of what copying reached in turns with it "
                         f"({beside / 1e9:.1f} GB/s)")
    alone = [f"{row['workload']} {row['compile_alone_ms']:.0f} ms" for row in results["workloads"]
             if row["workload"].endswith("_train") and row.get("compile_alone_ms")]
    if alone:
        notes.append(f"compiling alone, without building, differentiating and the first run: "
                     f"{', '.join(alone)}")
    curve = results.get("compile_curve")
    if curve:
        gpt2 = next(point for point in curve if point["layers"] == 12)
        notes.append(f"compiling a training step of GPT-2's 124 million parameters on one core: "
                     f"{gpt2['compile_ms'] / 1e3:.2f} s for {gpt2['nodes']:,} nodes; from "
                     f"{curve[0]['nodes']:,} to {curve[-1]['nodes']:,} nodes the time grows as "
                     f"nodes^{growth(curve):.2f}")
    return notes


def growth(curve):
    """The exponent that takes the first point of a curve to its last."""
    first, last = curve[0], curve[-1]
    return (math.log(last["compile_ms"] / first["compile_ms"])
            / math.log(last["nodes"] / first["nodes"]))


def print_table(results):
    table = [HEADINGS] + [cells(row) for row in results["workloads"]] + [summary(results)]
    widths = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
    print()
    for line in table:
        left = (0, 2)  # words; the rest are numbers
        print("  ".join(c.ljust(w) if i in left else c.rjust(w)
                        for i, (c, w) in enumerate(zip(line, widths))))
    print(*footnotes(results), sep="\n")


def write_results(results, path):
    path.write_text(json.dumps(results, indent=2) + "\n")


def markdown(results):
    lines = [HEADINGS, ["---"] * len(HEADINGS)]
    lines += [cells(row) for row in results["workloads"]] + [summary(results)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return table + "\n\n" + "; ".join(footnotes(results)) + "."


def update_readme(results, begin=BEGIN, end=END, to_text=markdown):
    """Replaces what stands between the two markers."""
    text = README.read_text()
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    if not rest or not tail:
        raise SystemExit(f"bench: {README.name} has no markers {begin} and {end}")
    README.write_text(f"{head}{begin}\n{to_text(results)}\n{end}{tail}")
