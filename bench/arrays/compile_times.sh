#!/usr/bin/env bash
# How long a compiler takes for programs of arrays: `compile_times.sh [compiler]`, seconds of one core each.
set -e
cd "$(dirname "$0")/../.."
compiler=${1:-g++}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for header in array ricci; do
  cat > "$folder/small_$header.cpp" <<CODE
#include <ricci/$header.h>
using namespace ricci;
int main() {
  auto f = [](Array x) { return sum(sin(x) * x); };
  Array x = linspace(0.0, 1.0, 5);
  print("{}", grad(f)(x));
}
CODE
done
TIMEFORMAT='%U'
for source in "$folder"/small_array.cpp "$folder"/small_ricci.cpp examples/cnn/main.cpp; do
  for level in -O0 -O2; do
    seconds=$({ time "$compiler" -std=c++20 $level -Iinclude -c "$source" -o "$folder/out.o" 2> /dev/null; } 2>&1)
    echo "${source#"$folder"/} $level: $seconds s"
  done
done
