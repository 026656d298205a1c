// A convolutional network that tells shapes apart: crosses, boxes, bars, in noise.
#include <filesystem>
#include <iostream>

#include "ricci/array.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

struct Conv {
  Array w, b;
  Array operator()(const Array& x) const { return conv2d(x, w, b, {.padding = 1}); }
};
struct Net {  // fields are params, named "c1.w", "out.b", …
  Conv c1{normal(Key(1), {8, 1, 3, 3}, 0, 0.4), zeros({8})};
  Conv c2{normal(Key(2), {16, 8, 3, 3}, 0, 0.15), zeros({16})};
  Array w = normal(Key(3), {256, 4}, 0, 0.06), b = zeros({4});
  Array operator()(Array x) const {
    x = max_pool2d(relu(c1(x)), 2);
    x = max_pool2d(relu(c2(x)), 2);
    return matmul(flatten(x, 1), w) + b;
  }
};
struct Batch {
  Array x, y;
};

Batch draw(const Key& key, std::int64_t n) {
  const auto [a, b] = split<2>(key);
  const Array y = randint(a, {n}, 0, 4);
  const Array r = expand_dims(arange(16), 1);
  const Array c = expand_dims(arange(16), 0);
  const Array shapes =
      stack({r == 8 || c == 8, abs(r - 8) < 4 && abs(c - 8) < 4, broadcast_to(r % 4 == 0, {16, 16}),
             broadcast_to(c % 4 == 0, {16, 16})});
  const Array clean = cast(shapes, DType::F32)[y];
  return {expand_dims(clean + normal(b, {n, 16, 16}, 0, 0.7), 1), y};
}

int main() {
  const auto loss = [](const Net& net, const Batch& b) { return cross_entropy(net(b.x), b.y); };
  const auto accuracy =
      jit([](const Net& net, const Batch& b) { return mean(argmax(net(b.x)) == b.y); });
  const auto step = jit([&](const Net& net, const Batch& b) {
    const auto [value, g] = value_and_grad(loss)(net, b);
    return std::pair{value, tree_map([](Array p, Array d) { return p - 0.1 * d; }, net, g)};
  });
  const Batch test = draw(Key(99), 256);
  Net net;
  Array value;
  for (int i = 1; i <= 60; ++i) {
    std::tie(value, net) = step(net, draw(Key(7).fold_in(i), 32));
    if (i % 20 == 0) {
      std::cout << i << "  loss " << value << "  test " << accuracy(net, test) << "\n";
    }
  }
  const std::string file = std::filesystem::temp_directory_path() / "ricci_cnn.npz";
  save(file, net);
  const Net again = load(file, Net{});
  std::cout << "loaded: " << accuracy(again, test) << "\n";
  return accuracy(again, test) > 0.9 ? 0 : 1;
}
