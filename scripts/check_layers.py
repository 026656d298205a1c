#!/usr/bin/env python3
"""Checks the direction of includes: a folder may include only itself and the
folders before it in FOLDERS; a public header needs public and standard headers only.
Headers of the compiler itself (COMPILER) are in include/ricci/compiler/, and nowhere else;
no umbrella but compiler.h reaches one of them. include/ricci/compat/ is a second room of build/.
Outside backend/ no back end is named, and none of its headers reached by any way: what
compiles and runs programs is reached through device/ alone, and threads through what
a device makes of them. Inside it no tensor op is named, nor asked for by its name, nor
is the graph looked at that a program was made from: a back end sees kernels, calls of
roles and control, and of what knows ops the few headers in ALLOWED.
`--self-test` shows lines that must be refused, and lines that must not, to the rules."""

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
           "train", "serve", "tools"}  # know no device: not the pool of threads either
ONE_BACKEND = re.compile(r"(?:.*/)?backend/\w+/")
# Of the folders whose headers know ops and graphs, what a back end may include: kinds of
# element-wise functions, reductions and spectra, and numbers.
OPS_FOLDERS = {"op", "ir", "build", "rule", "interp", "rewrite", "transform"}
ALLOWED = {"op/kinds.h", "ricci/op/elementwise.h", "ricci/op/reduce.h", "ricci/op/spectrum.h",
           "ricci/compiler/rule/nd.h", "rule/draws.h", "rule/number_functions.h",
           "rule/activation_constants.h"}
# What is said in code, whatever the spaces between: names of a folder's namespace, and of others'.
SPACE = r"\s*"
NAMES_BACKEND = [re.compile(text.replace(" ", SPACE)) for text in (
    r"\b(?:cpu|lir|cuda)\b ::",
    r"\bnamespace\b (?:\w+ = )?(?::: )?(?:\w+ :: )*\b(?:cpu|lir|cuda)\b [{;:]",
)]
NAMES_THREADS = [re.compile(r"\bThreadPool\b")]
NAMES_VENDOR = [re.compile(r"\b(?:(?:cblas_|LAPACKE_|dnnl_|LLVM|cublas|cudnn|nvrtc|cu[A-Z])\w*"
                           r"|(?:llvm|dnnl)\b)")]
NAMES_OP = [re.compile(text.replace(" ", SPACE)) for text in (
    r"\bop ::",
    r"\bop_of \(",
    r"\bOp\b",
    r"\bnamespace\b (?:\w+ = )?(?::: )?(?:ricci :: )?\bop [{;]",
    r"-> graph\b",
    r"\bprogram\w* (?:\. |\( \) \. )graph\b",
    r"\breference_of \((?:[^()]|\([^()]*\))*\) (?!\. name \( \) [,)])",  # a name for messages
    r"\bname \( \) [!=]=",
    r"[!=]= (?:[\w:.]|->|\( \))*\bname \( \)",
)]
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
    if folder in NEUTRAL and is_of_device(target):
        return f'{folder}/ knows no device ("{target}")'
    if folder == "backend" and is_of_ops(target) and target not in ALLOWED:
        return f'a back end sees no tensor op ("{target}")'
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


def is_of_device(target):
    return ONE_BACKEND.match(target) or target.endswith("thread_pool.h")


def is_of_ops(target):
    parts = target.removeprefix("ricci/").removeprefix("compiler/").split("/")
    is_umbrella = target.startswith("ricci/") and len(parts) == 1
    return is_umbrella or parts[0] in OPS_FOLDERS or parts[0] == "compat"


def check_angled(folder, public, target):
    if public and not STANDARD.fullmatch(target):
        return f"a public header includes <{target}>, which is not a C++ standard header"
    if folder != "backend" and VENDOR.match(target):
        return f"<{target}> belongs in backend/ only"
    return None


def includes_of(path, known={}):
    if path not in known:
        matches = map(INCLUDE.match, path.read_text().splitlines())
        known[path] = [m[2] for m in matches if m and m[1] == '"']
    return known[path]


def place_of(target):
    places = (root / target for root in (Path("include"), Path("src"), Path("tools")))
    return next((path for path in places if path.exists()), None)


def reached(target, seen):
    """All headers of ours that one includes, itself included."""
    if target not in seen:
        seen.add(target)
        path = place_of(target)
        for inner in includes_of(path) if path else ():
            reached(inner, seen)
    return seen


def check_reach(path, folder, known={}):
    """What knows no device reaches none by way of other headers."""
    faults = []
    for target in includes_of(path):
        if target not in known:
            known[target] = sorted(h for h in reached(target, set()) - {target} if is_of_device(h))
        faults += [f'{path}: {folder}/ knows no device, but reaches "{header}" by way of "{target}"'
                   for header in known[target]]
    return faults


MOST_NAMED = 36  # headers a user looks things up in


def named(umbrella, seen):
    """The headers that an umbrella names, and those that it names by others."""
    for header in includes_of(place_of(umbrella)):
        if header.count("/") > 1:
            seen.add(header)
        else:
            named(header, seen)
    return seen


def check_surface():
    """Users of ricci/ricci.h do not compile the compiler's own headers, nor look into many."""
    found = sorted(h for h in reached("ricci/ricci.h", set()) if h.startswith("ricci/comp"))
    faults = [f"ricci/ricci.h reaches {header}, which is not its users'" for header in found]
    count = len(named("ricci/ricci.h", set()))
    if count > MOST_NAMED:
        faults.append(f"ricci/ricci.h names {count} headers, more than {MOST_NAMED}: put together "
                      "what is one idea, or leave it to an umbrella of its own")
    return faults


CODE = re.compile(r'''//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^'\\\n]){1,4}\'''',
                  re.DOTALL)
INCLUDE_LINE = re.compile(r"^\s*#\s*include[^\n]*", re.MULTILINE)


def code_of(text):
    """What is neither comment nor text, line by line where it was."""
    def blank(match):
        kept = '""' if match[0][0] in "\"R" else " "
        return kept + "\n" * match[0].count("\n")
    return CODE.sub(blank, INCLUDE_LINE.sub("", text))


def rules_of(folder):
    if folder == "backend":
        return [(NAMES_OP, "a back end sees no tensor op")]
    rules = [(NAMES_BACKEND, f"{folder}/ knows no device"),
             (NAMES_VENDOR, f"{folder}/ knows no vendor")]
    return rules + [(NAMES_THREADS, f"{folder}/ knows no device")] * (folder in NEUTRAL)


def check_names(text, folder):
    """Pairs of a line's number and what is wrong with it."""
    code = code_of(text)
    lines = text.splitlines()
    for patterns, why in rules_of(folder):
        for pattern in patterns:
            for match in pattern.finditer(code):
                number = code.count("\n", 0, match.start()) + 1
                yield number, f"{why}: {lines[number - 1].strip()}"


def check_text(text, folder, public):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            check = check_quoted if match[1] == '"' else check_angled
            fault = check(folder, public, match[2])
            if fault:
                yield number, fault
    yield from check_names(text, folder)


def check_file(path, folder, public):
    faults = [f"{path}:{number}: {fault}"
              for number, fault in check_text(path.read_text(), folder, public)]
    return faults + (check_reach(path, folder) if folder in NEUTRAL else [])


REFUSED = {
    "runtime": (
        "auto d = cpu::make();", "auto d = ricci::cpu::make();", "auto d = ::ricci::cpu::make();",
        "using namespace ricci::cpu;", "using namespace cpu;", "namespace ricci::cpu {",
        "namespace ricci::cpu::inner {", "namespace ricci\n::cpu\n{", "namespace lir {",
        "namespace c = ricci::cuda;", "using ricci::cpu::make;", "lir ::run();",
        "namespace ricci { class ThreadPool; }", "void f(ThreadPool& pool);",
        'extern "C" void cblas_dgemm(int);', "void* f = dlsym(h, name); llvm::Module* m;",
        '#include "backend/cpu/run/target.h"', '#include "../src/backend/cpu/run/target.h"',
        "#include <cblas.h>", "#include <llvm/IR/Module.h>",
    ),
    "rule": ("ricci::cpu::make();", "namespace ricci::cpu {", "cblas_dgemm(1);"),
    "backend": (
        "if (o.is<op::Softmax>()) {", "if (o.is<ricci::op::Softmax>()) {", "using namespace op;",
        "using namespace ricci::op;", "namespace o = ricci::op;", "namespace o = op;",
        "namespace ricci::op {", "void f(const Op& o);", "op_of(step);", "program.graph->node(0);",
        "p->program().graph->node(0);", "auto g = program.graph;", "auto g = program().graph;",
        'if (program.reference_of(c).name() == "softmax") {', 'if ("softmax" == o.name()) {',
        "auto o = program.reference_of(c);", "program.reference_of(c).is<Softmax>();",
        "const auto n = program.reference_of(c).name();", '#include "ricci/op/ops.h"',
        '#include "ricci/op/reduce_more.h"', '#include "ricci/ir/graph.h"',
        '#include "ricci/build/build.h"', '#include "ricci/compiler/rule/lower.h"',
        '#include "rule/lower.h"', '#include "ricci/ricci.h"', '#include "ricci/compat/nn.h"',
    ),
}
TAKEN = {
    "runtime": ("Device::cpu(2);", "Device::lir();", "// cpu::make()", 'f("cpu::make();");',
                "/* namespace\ncpu { */", '#include "ricci/compiler/device/backend.h"'),
    "device": ("class ThreadPool {",),
    "backend": ("namespace ricci::cpu {", "// op::Softmax", "const int op = 1;", "f(op);",
                "name_(program.reference_of(step).name()),", "f(*context.graph);",
                '#include "ricci/op/elementwise.h"', '#include "op/kinds.h"', "cblas_dgemm(1);"),
}


def self_test():
    faults = []
    for rules, refused in ((REFUSED, True), (TAKEN, False)):
        for folder, texts in rules.items():
            for text in texts:
                if bool(list(check_text(text, folder, False))) != refused:
                    faults.append(f"{folder}/ {'may' if refused else 'may not'} say: {text}")
    if not any(map(is_of_device, reached("backend/cpu/run/executable.h", set()))):
        faults.append("headers that are reached by way of others are not seen")
    return faults


def main():
    faults = self_test() if "--self-test" in sys.argv[1:] else []
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
