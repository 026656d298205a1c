#!/usr/bin/env python3
"""Checks the direction of includes: a folder may include only itself and the
folders before it in FOLDERS; a public header needs public and standard headers only.
Headers of the compiler itself (COMPILER) are in include/ricci/compiler/, and nowhere else;
no umbrella but compiler.h reaches one of them. include/ricci/compat/ is a second room of build/.
Outside backend/ no back end is named: what compiles and runs programs is reached
through device/ alone, and threads through what a device makes of them. Inside it
no tensor op is named: a back end sees kernels, calls of roles and control."""

import re
import sys
from pathlib import Path

FOLDERS = (
    "support type quant op ir build loop rule interp rewrite transform schedule device backend "
    "runtime io model array data nn draw train serve"
).split()
COMPILER = {"loop", "rule", "rewrite", "schedule", "device"}
RANK = {folder: rank for rank, folder in enumerate(FOLDERS)}
SUFFIXES = {".h", ".cpp", ".def"}
COMPAT = "build"  # what headers in compat/ declare is in src/build/
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"[a-z_0-9]+")
NEUTRAL = {"loop", "schedule", "runtime", "io", "model", "array", "data", "nn", "draw",
           "train", "serve", "tools"}  # know no device
ONE_BACKEND = re.compile(r"backend/\w+/")
NAMES_BACKEND = re.compile(r"(?<![\w:])(cpu|lir|cuda)::")
NAMES_OP = re.compile(r"(?<![\w:])(ricci::)?op::\w|(?<!\w)op_of\(")
VENDOR = re.compile(r"(llvm|mlir|clang|dnnl|oneapi|cublas|cudnn|cuda|nvrtc|cblas|lapacke)")


def without_room(parts):
    """A public header's folder and name, without `compiler/`; nothing when it is in the wrong room."""
    if parts[0] == "compat":
        return (COMPAT, *parts[1:])
    inside = parts[0] == "compiler"
    parts = parts[1:] if inside else parts
    return parts if len(parts) < 2 or inside == (parts[0] in COMPILER) else []


def is_umbrella_for(folder, name):
    """One umbrella in another, or what a layer gives in one below: ricci/array.h in nn/."""
    if not Path("include/ricci", name).exists():
        return False
    layer = name.removesuffix(".h")
    return folder == FOLDERS[-1] or (layer in RANK and RANK[layer] <= RANK[folder])


def check_quoted(folder, public, target):
    if folder in NEUTRAL and (ONE_BACKEND.match(target) or target.endswith("thread_pool.h")):
        return f'{folder}/ knows no device ("{target}")'
    if folder == "tools":
        return None
    parts = target.split("/")
    if parts[0] == "ricci":
        parts = without_room(parts[1:])
    elif public:
        return f'a public header includes the private header "{target}"'
    if len(parts) == 1 and is_umbrella_for(folder, parts[0]):
        return None  # one umbrella in another
    if len(parts) < 2:
        return f'write "{target}" with its folder'
    if parts[0] not in RANK:
        return f'"{target}" is in no known folder'
    if RANK[parts[0]] > RANK[folder]:
        return f'{folder}/ may not include {parts[0]}/ ("{target}")'
    return None


def check_angled(folder, public, target):
    if public and not STANDARD.fullmatch(target):
        return f"a public header includes <{target}>, which is not a C++ standard header"
    if folder != "backend" and VENDOR.match(target):
        return f"<{target}> belongs in backend/ only"
    return None


def reached(header, seen):
    """All headers of ours that a public header includes, itself included."""
    if header not in seen:
        seen.add(header)
        for line in Path("include", header).read_text().splitlines():
            match = INCLUDE.match(line)
            if match and match[1] == '"':
                reached(match[2], seen)
    return seen


def check_surface():
    """Users of ricci/ricci.h do not compile the compiler's own headers."""
    found = sorted(h for h in reached("ricci/ricci.h", set()) if h.startswith("ricci/comp"))
    return [f"ricci/ricci.h reaches {header}, which is not its users'" for header in found]


def check_file(path, folder, public):
    faults = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            check = check_quoted if match[1] == '"' else check_angled
            fault = check(folder, public, match[2])
            if fault:
                faults.append(f"{path}:{number}: {fault}")
        elif folder in NEUTRAL and NAMES_BACKEND.search(line):
            faults.append(f"{path}:{number}: {folder}/ knows no device: {line.strip()}")
        elif folder == "backend" and NAMES_OP.search(line):
            faults.append(f"{path}:{number}: a back end sees no tensor op: {line.strip()}")
    return faults


def main():
    faults = []
    for root, public in ((Path("include/ricci"), True), (Path("src"), False)):
        for path in sorted(root.rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            inside = path.relative_to(root).parts
            if public:
                inside = without_room(inside)
            if not inside:
                faults.append(f"{path}: headers of {sorted(COMPILER)} alone are in compiler/")
                continue
            if len(inside) == 1:
                folder = FOLDERS[-1]  # an umbrella header sees everything
            elif inside[0] in RANK:
                folder = inside[0]
            else:
                faults.append(f"{path}: {inside[0]}/ is not one of the known folders")
                continue
            faults += check_file(path, folder, public)
    for path in sorted(Path("tools").rglob("*")):
        if path.suffix in SUFFIXES:
            faults += check_file(path, "tools", False)
    faults += check_surface()
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
