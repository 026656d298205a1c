// A convolutional network that tells shapes apart: crosses, boxes, bars, in noise.
#include <filesystem>
#include <iostream>

#include "ricci/nn.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

struct Net {  // fields are params, named "c1.w", "out.b", …
  nn::Conv2d c1{1, 8, 3, {.padding = 1}}, c2{8, 16, 3, {.padding = 1}};
  nn::Linear out{256, 4};
  Array operator()(Array x) const {
    x = max_pool2d(relu(c1(x)), 2);
    x = max_pool2d(relu(c2(x)), 2);
    return out(flatten(x, 1));
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
  const Batch test = draw(Key(99), 256);
  Trainer train(Net{}, loss, Sgd{.learning_rate = 0.1});
  for (int i = 1; i <= 60; ++i) {
    const Array value = train(draw(Key(7).fold_in(i), 32));
    if (i % 20 == 0) {
      std::cout << i << "  loss " << value << "  test " << accuracy(train.model(), test) << "\n";
    }
  }
  const std::string file = std::filesystem::temp_directory_path() / "ricci_cnn.npz";
  save(file, train.model());
  const Net again = load<Net>(file);
  std::cout << "loaded: " << accuracy(again, test) << "\n";
  return accuracy(again, test) > 0.9 ? 0 : 1;
}
