"""The survey's results as lines, as a file and as a heat map."""

import html as escape
import json
import math

from cases import CLASSES

GOOD, WORST_SHOWN = 1.0, 40


def number(value):
    if value is None:
        return "-"
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(digits, 5)}f}"


def line(row):
    if "ratio" not in row:
        what = "; ".join(f"{k}: {v}" for k, v in row.get("faults", {}).items())
        timed = f"ours {number(row['ours_ms'])} ms, no peer" if "ours_ms" in row else "compared"
        note = f"{timed}{' ' + what if what else ''}"
    else:
        note = (f"{number(row['ratio']):>6}  ours {number(row['ours_ms'])} ms, {row['best_peer']} "
                f"{number(row[row['best_peer'] + '_ms'])} ms, noise {row['noise']:.0%}")
    if "differs_from" in row:
        gaps = ", ".join(f"{n} by {row['gaps'][n]}" for n in row["differs_from"])
        note += f"  DIFFERS from {gaps}"
    return f"{row['id']:48} {note}"


def rated(results):
    return sorted((r for r in results["cases"] if "ratio" in r), key=lambda r: r["ratio"])


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def summary(results):
    rows = rated(results)
    ratios = [r["ratio"] for r in rows]
    about = results["machine"]
    differs = sum("differs_from" in r for r in results["cases"])
    failed = [r for r in results["cases"] if "ours" in r.get("faults", {})]
    below = lambda bound: sum(r < bound for r in ratios)
    out = [f"{len(rows)} cases with a ratio, {below(GOOD)} below 1, {below(0.8)} below 0.8, "
           f"geometric mean {number(geometric_mean(ratios))}",
           f"{differs} differ in value, {len(failed)} did not run here, "
           f"{len(results['not_measured'])} were not measured, "
           f"{len(results['not_surveyed'])} ops have no case",
           f"{about['cpu']}, {about['cores_used']} of {about['cores']} cores, {about['finished']}, "
           f"other processes took {about['other_work']:.0%} of the machine"]
    return out


def print_results(results):
    rows = rated(results)
    print(f"\nthe slowest, of {len(rows)}:")
    for row in rows[:WORST_SHOWN]:
        print(line(row))
    for row in results["cases"]:
        if "ours" in row.get("faults", {}) or "differs_from" in row:
            print(line(row))
    print(*[f"not surveyed: {fault}" for fault in results["not_surveyed"]], sep="\n",
          end="\n" if results["not_surveyed"] else "")
    print(*summary(results), sep="\n")


def print_changes(results, before):
    """What became faster or slower than in an earlier run, against the peers of each run, by more
    than the noise of both."""
    old = {row["id"]: row for row in before["cases"] if "ratio" in row}
    found = []
    for row in rated(results):
        was = old.get(row["id"])
        factor = row["ratio"] / was["ratio"] if was else 1.0
        if was and abs(math.log(factor)) > math.log1p(row["noise"] + was["noise"] + 0.05):
            found.append((factor, was["ratio"], row))
    print(f"\n{len(found)} changed against {before['machine']['finished']}:")
    for factor, was, row in sorted(found, key=lambda f: f[0]):
        print(f"{number(factor):>6} times: {number(was)} before, {line(row)}")


def rounded(value):
    """Six digits are more than a measurement has."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return value


def to_json(results):
    """One case a line, the slowest first, so that two runs compare well."""
    head = {k: v for k, v in results.items() if k != "cases"} | {"summary": summary(results)}
    others = [r for r in results["cases"] if "ratio" not in r]
    lines = ",\n    ".join(json.dumps(rounded(r)) for r in rated(results) + others)
    body = json.dumps(head, indent=2)[:-2]
    return f'{body},\n  "cases": [\n    {lines}\n  ]\n}}\n'


def colour(ratio):
    """Red below 1, white at 1, green above; a factor of 4 is as far as it goes."""
    share = max(-1.0, min(1.0, math.log(ratio, 4)))
    pale = round(255 * (1 - abs(share)))
    if share < 0:
        return f"rgb(255,{pale},{pale})"
    return f"rgb({pale},{round(255 - 90 * share)},{pale})"


def cell(row):
    if row is None:
        return "<td></td>"
    tip = escape.escape(line(row), quote=True)
    if "ratio" not in row:
        return f'<td class="none" title="{tip}">{"!" if row.get("faults") else "·"}</td>'
    mark = "≠" if "differs_from" in row else ""
    style = f"background:{colour(row['ratio'])}"
    return f'<td style="{style}" title="{tip}">{row["ratio"]:.2f}{mark}</td>'


STYLE = """body{font:13px sans-serif;margin:2em} table{border-collapse:collapse}
td,th{padding:2px 6px;border:1px solid #ddd;text-align:right} td:first-child{text-align:left}
th{position:sticky;top:0;background:#fff} .none{color:#999}"""


def html(results, title):
    """Rows are ops, the worst first; columns are shape classes, of values and of gradients."""
    by_name = {}
    for row in results["cases"]:
        name = row["op"] if row["op"] == row["member"] else f"{row['op']}.{row['member']}"
        by_name.setdefault(name, {})[row["class"], row["gradient"]] = row
    columns = [(c, g) for c in CLASSES for g in (False, True)
               if any((c, g) in cells for cells in by_name.values())]
    worst = lambda cells: min((r["ratio"] for r in cells.values() if "ratio" in r), default=9e9)
    heads = "".join(f"<th>{c}{' ∂' if g else ''}</th>" for c, g in columns)
    lines = "".join(f"<tr><td>{escape.escape(name)}</td>"
                    + "".join(cell(cells.get(c)) for c in columns) + "</tr>\n"
                    for name, cells in sorted(by_name.items(), key=lambda item: worst(item[1])))
    missing = "".join(f"<li>{escape.escape(f)}</li>" for f in results["not_surveyed"])
    notes = "".join(f"<p>{escape.escape(s)}</p>" for s in summary(results))
    return (f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style>\n"
            f"<h1>Best peer's time over ours: {title}</h1>{notes}<p>∂ is the gradient. "
            f"Point at a number for its times.</p><table><tr><th></th>{heads}</tr>\n{lines}</table>"
            + (f"<h2>Not surveyed</h2><ul>{missing}</ul>" if missing else "") + "\n")
