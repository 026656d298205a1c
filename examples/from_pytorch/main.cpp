// The blocks of docs/FROM_PYTORCH.md, one after the other, with what they give.
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

void tensors() {
  const Array x = array({{1.0, 2.0}, {3.0, 4.0}});
  const Array y = sum(relu(matmul(x, x) + 1), 1, true);
  const Array z = concat({x, y}, 1);
  std::cout << to_string(z.shape()) << z[0] << z(slice(), -1) << mean(z).item() << "\n";
  expect(all(z == array({{1.0, 2.0, 19.0}, {3.0, 4.0, 39.0}})), "the columns");
}

struct Layer {
  Array w, b;
};
struct Net {  // its params are "conv.w", "conv.b", "out.w", "out.b"
  Layer conv{normal(Key(1), {4, 1, 3, 3}, 0, 0.3), zeros({4})};
  Layer out{normal(Key(2), {64, 10}, 0, 0.1), zeros({10})};
  Array operator()(Array x) const {
    x = max_pool2d(relu(conv2d(x, conv.w, conv.b, {.padding = 1})), 2);
    return matmul(flatten(x, 1), out.w) + out.b;
  }
};

void a_network() {
  const Net net;
  const Array logits = net(normal(Key(5), {2, 1, 8, 8}));
  expect(logits.shape() == Dims{2, 10} ? 1 : 0, "logits");
  expect(leaf_names(net)[0] == "conv.w" ? 1 : 0, "names");
}

void a_training_step() {
  const auto loss = [](const Net& n, Array x, Array y) { return cross_entropy(n(x), y); };
  const auto step = jit([&](const Net& n, Array x, Array y) {
    const auto [value, g] = value_and_grad(loss)(n, x, y);
    return std::pair{value, tree_map([](Array p, Array d) { return p - 0.1 * d; }, n, g)};
  });
  Net net;
  Array value;
  const Array x = normal(Key(3), {8, 1, 8, 8});
  const Array y = randint(Key(4), {8}, 0, 10);
  for (int i = 0; i < 20; ++i) std::tie(value, net) = step(net, x, y);
  expect(value < 1.0, "it learns");
}

void gradients_without_training() {
  const Array x = linspace(0, 1, 5);
  const Array dx = grad([](Array v) { return sum(sin(v)); })(x);
  const Array z = stop_gradient(sum(sin(x))) * x;
  expect(all(abs(dx - cos(x)) < 1e-6), "the gradient");
  expect(abs(z[4] - sum(sin(x))) < 1e-6, "detached");
}

void state_files() {
  const Net net;
  const std::string file = std::filesystem::temp_directory_path() / "ricci_from_pytorch.npz";
  save(file, net);
  const Net again = load(file, Net{});
  expect(all(again.conv.w == net.conv.w), "what was saved");
  std::filesystem::remove(file);
}

void functions_of_functions() {
  const auto loss = [](Array w, Array x, Array y) { return square(dot(w, x) - y); };
  const auto per_example = jit(vmap(grad(loss), {.in_axes = {{}, 0, 0}}));
  const Array g = per_example(ones({3}), eye(3), zeros({3}));
  expect(all(g == 2 * eye(3)), "a gradient each");
}

}  // namespace

int main() {
  tensors();
  a_network();
  a_training_step();
  gradients_without_training();
  state_files();
  functions_of_functions();
  std::cout << "all as in PyTorch\n";
}
