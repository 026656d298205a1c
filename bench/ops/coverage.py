"""Which ops of the op table the survey leaves out: the table is docs/generated/ops.md, which the
tool writes and a test compares with it."""

import re
from pathlib import Path

import cases
import catalogue

OPS = Path(__file__).resolve().parents[2] / "docs/generated/ops.md"
WITHOUT_GRADIENT = {"zero", "leaf", "refused"}


def op_table():
    """For each op the names its family has in text, and where its reverse rule comes from."""
    text = OPS.read_text()
    cell = r" \| [a-z -]+"
    rules = dict(re.findall(r"^\| \[`(\w+)`\]\(#\w+\) \| ([a-z -]+)" + 2 * cell + r" \| derived",
                            text, re.M))
    found = {}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        name, _, rest = section.partition("\n")
        if name in ("Transforms", "Other names"):
            continue
        usage = re.search(r"```text\n(.*?)```", rest, re.S)
        members = re.findall(r"= (\w+)", usage[1]) if usage else [name]
        found[name] = (members, rules.get(name, "zero"))
    return found


def faults():
    """A line for each op, member of a family and gradient that nothing measures."""
    every = catalogue.of_ops()
    surveyed = {c.op for c in every}
    members = {(c.op, c.member) for c in every}
    differentiated = {c.op for c in every if c.gradient}
    lines = []
    for op, (names, rule) in op_table().items():
        if op in cases.SKIPPED:
            continue
        if op in cases.THROUGH:
            if cases.THROUGH[op] not in differentiated:
                lines.append(f"{op}: no gradient of {cases.THROUGH[op]} measures it")
            continue
        if op not in surveyed:
            lines.append(f"{op}: no case")
            continue
        if len(names) > 1:
            lines += [f"{op}: no case of {m}" for m in names if (op, m) not in members]
        if rule not in WITHOUT_GRADIENT and op not in differentiated \
                and op not in cases.NO_GRADIENT:
            lines.append(f"{op}: no gradient")
    known = set(op_table())
    named = surveyed | set(cases.SKIPPED) | set(cases.THROUGH) | set(cases.NO_GRADIENT)
    return lines + [f"{op}: not in the op table" for op in sorted(named - known)]
