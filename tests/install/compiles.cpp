// Compiles a graph with an installed library and runs it.
#include <cstdio>

#include "ricci/build/build.h"
#include "ricci/runtime/compiled_graph.h"

int main() {
  ricci::Graph g("double");
  const ricci::Value x = g.input("x", ricci::f32({3}));
  g.set_outputs({x + x});
  const ricci::Tensor y =
      ricci::compile(g).run({{"x", ricci::Tensor::of<float>({3}, {1, 2, 3})}}).front();
  std::puts(y.to_string().c_str());
  return y.identical(ricci::Tensor::of<float>({3}, {2, 4, 6})) ? 0 : 1;
}
