#!/usr/bin/env bash
# Shows what Ricci does: a program and its gradient as text, then a GPT trained from scratch for about a minute, and
# a report about it. `make demo` builds first. Arguments go to `ricci train`, e.g. scripts/demo.sh --seconds 10.
set -euo pipefail
cd "$(dirname "$0")/.."
ricci=build/release/ricci
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
say "A GPT, trained from scratch by one compiled program"
run=$out/gpt
for ((n = 2; ; ++n)); do [ -e "$run" ] || break; run=$out/gpt-$n; done
"$ricci" train gpt --data examples/gpt/corpus.txt --out "$run" --steps 900 --seconds 60 \
  --evaluate-every 150 --sample-every 300 "$@" | sed '/^Try next:/,$d'
say "It writes"
"$ricci" sample "$run" --prompt "The " --length 300

say "The report, to be opened in a browser: $PWD/$run/report.html"
cat <<TEXT
It has the curves, samples, where the time of a step goes, its memory and its graph. Three things to try next:

  $ricci train --resume $run --steps 2000             # goes on where it stopped
  $ricci train gpt --data examples/gpt/corpus.txt --learning-rate 5e-4 --steps 900 --out $out/slow
  $ricci report $run $out/slow -o $out/compared.html  # the two side by side

Others: $ricci train cnn, mamba, vit or mlp; docs/TRAIN.md and docs/tutorials/training.md say more.
TEXT
