// Layers, training and fine-tuning: the programs of docs/NN.md.
#include <filesystem>
#include <iostream>

#include "ricci/nn.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

struct Net {
  nn::Linear hidden{2, 32};
  nn::BatchNorm norm{32};
  nn::Dropout drop{0.1};
  nn::Linear out{32, 2};
  Array operator()(const Array& x) const { return out(drop(relu(norm(hidden(x))))); }
};
struct Batch {
  Array x, y;
};

// Two moons: classes that no line parts.
Batch moons(const Key& key, std::int64_t n) {
  const auto [a, b, c] = split<3>(key);
  const Array y = randint(a, {n}, 0, 2);
  const Array side = cast(y, DType::F32);
  const Array angle = uniform(b, {n}, 0, 3.14159);
  const Array x = stack({cos(angle) * (1 - 2 * side) + side, sin(angle) * (1 - 2 * side)}, 1);
  return {x + normal(c, {n, 2}, 0, 0.1), y};
}

struct Residual {
  Residual(std::int64_t width, std::int64_t depth) {
    for (std::int64_t i = 0; i < depth; ++i) maps.emplace_back(width, width);
  }
  void visit(TreeVisitor& v) { v.visit("maps", maps); }
  Array operator()(Array x) const {
    for (const nn::Linear& map : maps) x = x + gelu(map(x));
    return x;
  }
  std::vector<nn::Linear> maps;
};

Array cross_entropy_of(const Net& net, const Batch& b) { return cross_entropy(net(b.x), b.y); }

double train_and_test(const std::string& file) {
  nn::seed(42);
  Trainer train(Net{}, cross_entropy_of, AdamW{.learning_rate = 1e-2});
  for (int i = 0; i < 200; ++i) {
    const Array loss = train(moons(Key(1).fold_in(i), 64));
    if (i % 50 == 0) std::cout << i << "  loss " << loss << "\n";
  }
  const Batch test = moons(Key(99), 500);
  const Net net = train.model();
  const Array accuracy = mean(argmax(net(test.x)) == test.y);

  save(file, train);
  Trainer again(Net{}, cross_entropy_of, AdamW{.learning_rate = 1e-2});
  restore(file, again);

  std::cout << nn::summary(net) << "accuracy " << accuracy << "\n";
  return array_equal(again.model().out.w, net.out.w) ? accuracy.item() : 0;
}

// A step by hand: what a Trainer does, for those who want to see it.
double by_hand() {
  const auto loss = [](const Net& net, const Batch& b, const Key& key) {
    nn::TrainingScope training(key);
    const Array value = cross_entropy(net(b.x), b.y);
    return std::pair{value, training.updated(net)};
  };
  const auto step = jit([&](const Net& net, const Batch& b, const Key& key) {
    auto [result, g] = value_and_grad(loss)(net, b, key);
    auto [value, next] = result;
    next = tree_map([](Array p, Array d) { return p - 0.1 * d; }, next, g);
    return std::pair{value, next};
  });
  Net net;
  Array value;
  for (int i = 0; i < 20; ++i) {
    std::tie(value, net) = step(net, moons(Key(1).fold_in(i), 64), Key(5).fold_in(i));
  }
  return value.item();
}

double fine_tune() {
  nn::Gpt gpt{{.vocabulary = 16, .context = 16, .width = 32, .heads = 4, .layers = 2}};
  const auto next_token = [](const nn::Gpt& model, const Array& ids) {
    return cross_entropy(model(ids(slice(), slice(0, -1))), ids(slice(), slice(1, {})));
  };
  const Array ids = expand_dims(arange(12) % 4, 0);
  gpt = nn::adapt(gpt, "blocks.*.attention.*", nn::LoRA{.rank = 4});
  Trainer tune(gpt, next_token, AdamW{.learning_rate = 3e-2}, {.trainable = nn::is_adapter});

  Array loss = tune(ids);
  const double first = loss.item();
  for (int i = 0; i < 40; ++i) loss = tune(ids);
  const nn::Gpt tuned = nn::merge_adapters(tune.model());
  std::cout << tuned.generate(ids, 4, Key(1), 0) << "\n";
  return loss.item() / first;
}

int main() {
  const std::string file = std::filesystem::temp_directory_path() / "ricci_layers.safetensors";
  const double accuracy = train_and_test(file);
  const Residual tower(4, 3);
  const auto names = leaf_names(tower);  // "maps.0.w", "maps.0.b", …
  const double loss = by_hand();
  const double ratio = fine_tune();
  std::cout << "by hand " << loss << ", fine-tuned to " << ratio << " of the loss\n";
  std::filesystem::remove(file);
  return accuracy > 0.9 && names.size() == 6 && loss < 0.7 && ratio < 0.95 ? 0 : 1;
}
