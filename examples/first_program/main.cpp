// A first program: a two-layer network and its loss, built in C++, printed as text, checked,
// compiled and run.
#include <cstdio>

#include "ricci/graph.h"
#include "ricci/ricci.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

int main() {
  Graph g("two_layers");
  const Value x = g.input("x", f32({4, 3}));
  const Value y = g.input("y", f32({4, 1}));
  const Value w1 = g.param("w1", f32({3, 8}));
  const Value b1 = g.param("b1", f32({8}));
  const Value w2 = g.param("w2", f32({8, 1}));

  const Value hidden = tanh(matmul(x, w1) + b1).named("hidden");
  const Value error = matmul(hidden, w2) - y;
  const Value loss = mean(square(error)).named("loss");
  g.set_outputs({loss, hidden});

  verify(g);
  std::puts(print(g).c_str());

  const Feeds feeds = {{"x", Tensor::splat(f32({4, 3}), 0.5)},
                       {"y", Tensor::of<float>({4, 1}, {0, 1, 0, 1})},
                       {"w1", Tensor::splat(f32({3, 8}), 0.1)},
                       {"b1", Tensor::splat(f32({8}), 0.0)},
                       {"w2", Tensor::splat(f32({8, 1}), 0.25)}};
  const Outputs out = compile(g).run(feeds);
  std::printf("loss   = %s\nhidden = %s\n", out["loss"].to_string().c_str(),
              out["hidden"].to_string().c_str());

  const Transformed d = value_and_grad(g, {"w1", "b1"});  // a new graph: loss, hidden, dw1, db1
  const Outputs all = compile(d.graph).run(feeds);
  std::printf("gradient of b1 = %s\n", all["gradient of b1"].to_string().c_str());

  // Mistakes are explained where they are made.
  try {
    matmul(w1, x);
  } catch (const UserError& e) {
    std::printf("\n%s\n", e.what());
  }
}
