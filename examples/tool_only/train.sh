#!/bin/sh
# Fits a curve with the command-line tool alone: data, loss, gradients and steps are graphs, and what
# they give is handed on by name in NPZ files.
#
#   RICCI=build/ricci examples/tool_only/train.sh
set -eu
ricci=${RICCI:-ricci}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat > fit.ric <<'END'
graph @data {
  %x = rng_uniform {shape = [64], low = -1.0, high = 1.0, dtype = f32}
  %y = sin %x
  return %x, %y
}
graph @start {
  %c = constant splat 0.0 : f32[4]
  return %c
}
graph @loss {
  %x = input "x" : f32[64]
  %y = input "y" : f32[64]
  %c = param "c" : f32[4]
  %k = iota {shape = [1, 4], axis = 1, dtype = f32}
  %column = reshape %x {new_shape = [64, 1]}
  %powers = pow %column, %k
  %coefficients = reshape %c {new_shape = [4, 1]}
  %fit = matmul %powers, %coefficients
  %curve = reshape %fit {new_shape = [64]}
  %error = sub %curve, %y
  %squared = square %error
  %loss = reduce_mean %squared
  return %loss
}
graph @update {
  %c = input "c" : f32[4]
  %g = input "gradient of c" : f32[4]
  %rate = constant 0.5 : f32[]
  %step = mul %rate, %g
  %new = sub %c, %step
  return %new as "c"
}
END

"$ricci" run fit.ric --graph data --by-name --out data.npz > data.txt
"$ricci" run fit.ric --graph start --by-name --out c.npz > start.txt
"$ricci" grad fit.ric --graph loss --wrt c --only-grads -o gradient.ric
for step in $(seq 40); do
  "$ricci" run gradient.ric --inputs data.npz --inputs c.npz --by-name --out g.npz > g.txt
  "$ricci" run fit.ric --graph update --inputs c.npz --inputs g.npz --by-name --out c.npz > c.txt
done
cat c.txt
"$ricci" run fit.ric --graph loss --inputs data.npz --inputs c.npz
