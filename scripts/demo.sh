#!/usr/bin/env bash
# Shows what the tool does: builds are done; this checks, runs, simplifies and draws a program.
set -euo pipefail
cd "$(dirname "$0")/.."
ricci=build/ricci
out=build/demo
mkdir -p "$out"
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "A program as text (examples/programs/mlp_loss.ric)"
cat examples/programs/mlp_loss.ric
say "Checked"
"$ricci" check examples/programs/mlp_loss.ric
say "Run by the reference interpreter on random inputs"
"$ricci" run examples/programs/mlp_loss.ric --random 1 --out "$out/mlp_loss.npz"
say "Attention, with a scan over time, the same way"
"$ricci" run examples/programs/attention.ric --random 1
"$ricci" run examples/programs/scan.ric --random 1
say "A C++ program that builds, prints and runs a network"
build/dev/examples/first_program
say "Drawn"
"$ricci" show examples/programs/mlp_loss.ric --html "$out/mlp_loss.html"
echo "open $out/mlp_loss.html in a browser"
say "The op reference"
"$ricci" doc -o "$out/ops.md"
echo "$(grep -c '^## ' "$out/ops.md") sections in $out/ops.md"
