// The blocks of docs/FROM_MLX.md, one after the other, with what they give.
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "ricci/array.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

namespace {

void expect(const Array& holds, const char* what) {
  if (holds.item() != 0) return;
  std::cerr << "not so: " << what << "\n";
  std::exit(1);
}

void arrays_are_lazy() {
  const Array a = array({1.0, 2.0, 3.0});
  const Array b = exp(a) + a * 2;  // nothing is computed yet
  b.eval();
  std::cout << b[1] << " " << to_string(b.shape()) << "\n";
  expect(abs(b[0] - 4.7182818) < 1e-5, "e + 2");
}

void transforms() {
  const Array x = normal(Key(1), {16, 3});
  const Array y = matmul(x, array({1.0, -2.0, 0.5}));
  const auto loss = [&](Array w) { return mean(square(matmul(x, w) - y)); };
  Array w = zeros({3});
  const auto [value, g] = value_and_grad(loss)(w);
  const auto step = jit([&](Array v) { return v - 0.1 * grad(loss)(v); });
  for (int i = 0; i < 200; ++i) w = step(w);
  const Array batched = vmap(loss)(stack({w, zeros({3})}));
  expect(all(abs(w - array({1.0, -2.0, 0.5})) < 1e-3), "the weights");
  expect(abs(batched[1] - value) < 1e-5, "one of a batch");
  expect(all(abs(g) > 0), "a gradient");
}

struct Linear {
  Array w, b;
  Array operator()(const Array& x) const { return matmul(x, w) + b; }
};
struct MLP {  // vectors, maps and optionals of trees are trees
  std::vector<Linear> layers = {{normal(Key(2), {2, 16}), zeros({16})},
                                {normal(Key(3), {16, 1}, 0, 0.2), zeros({1})}};
  Array operator()(Array x) const {
    for (std::size_t i = 0; i + 1 < layers.size(); ++i) x = relu(layers[i](x));
    return layers.back()(x);
  }
};

void modules() {
  MLP mlp;
  const auto loss = [](const MLP& m, Array x, Array y) { return mse(m(x), y); };
  const Array x = normal(Key(4), {32, 2});
  const Array y = sum(x, 1, true);
  const auto [value, g] = value_and_grad(loss)(mlp, x, y);
  mlp = tree_map([](Array p, Array d) { return p - 0.05 * d; }, mlp, g);
  expect(loss(mlp, x, y) < value, "less than before");
  expect(leaf_names(mlp)[0] == "layers.0.w" ? 1 : 0, "names");
}

void random_numbers() {
  manual_seed(7);
  const Array x = normal({3, 4});
  const auto [k1, k2] = split<2>(Key(0));
  const Array y = uniform(k1, {3});
  manual_seed(7);
  expect(all(x == normal({3, 4})), "the same seed");
  expect(all(y != uniform(k2, {3})), "other keys, other numbers");
}

void files() {
  const std::string file = std::filesystem::temp_directory_path() / "ricci_from_mlx.npz";
  const Array x = arange(6);
  save_npz(file, {{"x", x}, {"y", x * 2}});
  const auto arrays = load_npz(file);
  expect(all(arrays.at("y") == 2 * x), "what was saved");
  std::filesystem::remove(file);
}

}  // namespace

int main() {
  arrays_are_lazy();
  transforms();
  modules();
  random_numbers();
  files();
  std::cout << "all as in MLX\n";
}
