// A neural ODE: a network learns the field behind a spiral, through the steps of a solver.
#include <iostream>

#include "ricci/array.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

constexpr double Dt = 0.025;

Array rk4(const auto& f, const Array& y) {
  const Array k1 = f(y);
  const Array k2 = f(y + Dt / 2 * k1);
  const Array k3 = f(y + Dt / 2 * k2);
  const Array k4 = f(y + Dt * k3);
  return y + Dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
}

Array odeint(const auto& f, const Array& y0,
             std::int64_t steps) {  // f is captured, with all it has
  return scan(y0, steps, [&](Array y) { return carry_and(y = rk4(f, y), y); }).ys;
}

struct Layer {
  Array w, b;
  Array operator()(const Array& x) const { return matmul(x, w) + b; }
};
struct Field {
  Layer in{normal(Key(1), {2, 32}, 0, 0.7), zeros({32})};
  Layer out{normal(Key(2), {32, 2}, 0, 0.1), zeros({2})};
  Array operator()(const Array& y) const { return out(tanh(in(pow(y, 3)))); }
};
struct Batch {
  Array y0, target;
};

Array error(const Field& f, const Batch& b) {
  return mean(abs(odeint(f, b.y0, b.target.dim(0).value()) - b.target));
}

struct Adam {
  Field mean, square;
};

int main() {
  const Array a = array({{-0.1, 2.0}, {-2.0, -0.1}});
  const Array spiral =
      odeint([&](Array y) { return matmul(pow(y, 3), a); }, array({{2.0, 0.0}}), 200);
  const auto zero = [](const Array& x) { return zeros_like(x); };
  const auto step = jit([](const Field& f, const Adam& adam, const Batch& b, Array t) {
    const auto [loss, g] = value_and_grad(error)(f, b);
    const Adam next = {
        tree_map([](Array m, Array d) { return 0.9 * m + 0.1 * d; }, adam.mean, g),
        tree_map([](Array v, Array d) { return 0.999 * v + 0.001 * d * d; }, adam.square, g)};
    const Field moved = tree_map(
        [&](Array x, Array m, Array v) {
          return x - 3e-3 * (m / (1 - pow(0.9, t))) / (sqrt(v / (1 - pow(0.999, t))) + 1e-8);
        },
        f, next.mean, next.square);
    return std::tuple{loss, moved, next};
  });
  Field f;
  Adam adam = {tree_map(zero, f), tree_map(zero, f)};
  Array loss;
  Array first;
  for (int i = 1; i <= 300; ++i) {
    const Array start = randint({16}, 0, 200 - 11);
    const Array rows = expand_dims(start, 0) + expand_dims(arange(11), 1);
    const Array path = squeeze(spiral[rows], 2);
    std::tie(loss, f, adam) = step(f, adam, Batch{path[0], path[slice(1, {})]}, i);
    if (i == 1) first = loss;
    if (i % 100 == 0) std::cout << i << "  loss " << loss << "\n";
  }
  const Field curved = hvp(error)(f, f, Batch{spiral[0], spiral[slice(1, 11)]});
  std::cout << "curvature along the parameters, by a bias: " << curved.out.b << "\n";
  return loss < first / 3 ? 0 : 1;
}
