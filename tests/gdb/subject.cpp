// What the printers for gdb are tried on: see check.cmake.
#include <vector>

#include "ricci/array.h"
#include "ricci/graph.h"
#include "ricci/ricci.h"

struct Layer {
  ricci::Array w;
  ricci::Array b;
};

[[gnu::noinline]] void stop_here(const void*) { asm volatile("" ::: "memory"); }

int main() {
  using namespace ricci;  // NOLINT
  const Tensor tensor = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6.5F});
  const Tensor turned = tensor.transposed(std::vector<std::int64_t>{1, 0});
  Tensor halves = Tensor::splat(bf16({2}), 1.5);
  Layer layer{.w = Array(tensor), .b = {}};
  layer.b = layer.w + 1;
  Graph graph("net");
  const Value x = graph.input("x", f32({2, 3}));
  const Value y = tanh(x * graph.param("c1.w", f32({3}))).named("y");
  graph.set_outputs({{"prediction", y}});
  // Results of programs, which nobody has looked at.
  const Array compiled = jit([](const Array& a) { return a * 2 + 1; })(layer.w);
  const std::vector<Array> several = {layer.w.T() + 0.5};
  eval(several);
  const Array computed = several[0];
  stop_here(&layer);
  return static_cast<int>(turned.numel() + halves.numel()) - 8;
}
