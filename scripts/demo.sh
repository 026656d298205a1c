#!/usr/bin/env bash
# Shows what Ricci does: a program and its gradient as text, then a GPT trained from scratch.
# `make demo` builds first. Arguments go to the GPT, e.g. scripts/demo.sh --seconds 10.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/release
ricci=$build/ricci
out=build/demo
mkdir -p "$out"
say() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n== %s\n' "$*"; fi; }

say "A program as text (examples/programs/mlp_loss.ric)"
cat examples/programs/mlp_loss.ric
say "Run on random inputs"
"$ricci" run examples/programs/mlp_loss.ric --random 1
say "Its gradient: a new program, run like any other, and compared with differences"
"$ricci" grad examples/programs/mlp_loss.ric --wrt w2,b2
"$ricci" check examples/programs/mlp_loss.ric --random 1
say "Drawn"
"$ricci" show examples/programs/attention.ric --html "$out/attention.html"
echo "open $out/attention.html in a browser"
say "A network trained in C++ and looked at with every transform (examples/gradients)"
"$build/examples/example_gradients"
say "A GPT, trained from scratch by one compiled program (examples/gpt)"
"$build/examples/example_gpt" --trace "$out/gpt_trace.json" "$@"
