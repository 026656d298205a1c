#!/usr/bin/env bash
# Shows what the tool does: checks, runs, simplifies and draws programs. `make demo` builds first.
set -euo pipefail
cd "$(dirname "$0")/.."
ricci=build/ricci
out=build/demo
mkdir -p "$out"
say() { if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n== %s\n' "$*"; fi; }

say "A program as text (examples/programs/mlp_loss.ric)"
cat examples/programs/mlp_loss.ric
say "Checked"
"$ricci" check examples/programs/mlp_loss.ric
say "Run by the reference interpreter on random inputs"
"$ricci" run examples/programs/mlp_loss.ric --random 1 --out "$out/mlp_loss.npz"
say "Attention, a loop over time, and a loop that stops by itself"
"$ricci" run examples/programs/attention.ric --random 1
"$ricci" run examples/programs/recurrent.ric --random 1
"$ricci" run examples/programs/newton.ric --random 3
say "Simplified by passes"
"$ricci" opt examples/programs/layer_norm.ric --passes canonicalize,common_subexpression_elimination
say "Gradients: a new program, run like any other, and compared with differences"
"$ricci" grad examples/programs/mlp_loss.ric --wrt w2,b2 --internal-seed
"$ricci" grad examples/programs/mlp_loss.ric --wrt w2,b2 --internal-seed | "$ricci" run - --random 1
"$ricci" check examples/programs/mlp_loss.ric --random 1
say "A C++ program that builds, prints and runs a network, and meets an error"
build/dev/examples/example_first_program
say "A C++ program that trains a network and looks at it with every transform"
build/dev/examples/example_gradients
say "Drawn"
"$ricci" show examples/programs/attention.ric --html "$out/attention.html"
echo "open $out/attention.html in a browser"
say "The op reference"
"$ricci" doc -o "$out/ops.md"
echo "$(grep -c '^## ' "$out/ops.md") ops described in $out/ops.md"
