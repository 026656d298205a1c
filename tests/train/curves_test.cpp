// Fifty steps of a GPT, a Mamba and a CNN give the losses that JAX and optax give from the same
// first values (make_curves.py).
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/nn.h"

#include "test_paths.h"

namespace ricci::curves_test {
namespace {

constexpr std::int64_t Steps = 50;
constexpr std::int64_t Batches = 5;
constexpr std::int64_t Vocabulary = 16;
constexpr std::int64_t Places = 8;

// The formula of make_curves.py; buffers stay as they are.
class FirstValues final : public detail::NamingVisitor {
 public:
  void array(Array& leaf) override {
    const std::string& name = path();
    unsigned sum = 0;
    for (const char c : name) sum += static_cast<unsigned char>(c);
    const double phase = sum % 97;
    const double around = name.ends_with("norm.w") || name.ends_with(".d") ? 1 : 0;
    std::vector<float> numbers;
    for (std::int64_t k = 1; k <= leaf.size(); ++k) {
      const auto i = static_cast<double>(k);
      numbers.push_back(static_cast<float>(around + 0.3 * std::sin(0.37 * i * i + phase)));
    }
    leaf = Array(
        Tensor::of<float>(leaf.tensor().type().static_dims(), std::span<const float>(numbers)));
  }
  void buffer(Array& /*leaf*/) override {}
};

struct CurveBatch {
  Array x, y;
};

CurveBatch token_batch(std::int64_t step) {
  std::vector<std::int32_t> all;
  for (std::int64_t b = 0; b < 4; ++b) {
    for (std::int64_t i = 0; i <= Places; ++i) {
      const std::int64_t t = (step % Batches * 31 + b * 17 + i * i * 5 + i * 3) % Vocabulary;
      all.push_back(static_cast<std::int32_t>(t));
    }
  }
  const Array ids = array(all, {4, Places + 1});
  return {ids(slice(), slice(0, -1)).eval(), ids(slice(), slice(1, {})).eval()};
}

CurveBatch image_batch(std::int64_t step) {
  std::vector<float> pixels;
  for (int k = 0; k < 8 * 2 * 8 * 8; ++k) {
    const double i = k;
    pixels.push_back(
        static_cast<float>(std::sin(0.11 * i * i + static_cast<double>(step % Batches))));
  }
  std::vector<std::int32_t> classes;
  for (std::int64_t b = 0; b < 8; ++b) {
    classes.push_back(static_cast<std::int32_t>((b * 3 + step % Batches) % 4));
  }
  return {array(pixels, {8, 2, 8, 8}), array(classes)};
}

template <class Model>
void expect_curve(const char* name, Model model, CurveBatch (*data)(std::int64_t)) {
  const Array wanted = load_npz(RICCI_SOURCE_DIR "/tests/train/values/curves.npz").at(name);
  FirstValues().visit(model);
  Trainer train(
      model, [](const Model& m, const CurveBatch& b) { return cross_entropy(m(b.x), b.y); },
      AdamW{.learning_rate = 1e-2, .weight_decay = 0.01});
  const std::vector<double> losses = wanted.to_vector<double>();
  ASSERT_EQ(std::ssize(losses), Steps);
  double worst = 0;
  for (std::int64_t i = 0; i < Steps; ++i) {
    const double there = losses[static_cast<std::size_t>(i)];
    const double here = train(data(i)).item();
    // Roundings differ from the first step on, and grow as the steps go by.
    const double allowed = i == 0 ? 1e-5 : 1e-4;
    EXPECT_NEAR(here, there, allowed * (1 + there)) << name << ", step " << i;
    worst = std::max(worst, std::abs(here - there));
  }
  ::testing::Test::RecordProperty("worst", std::to_string(worst));
  EXPECT_LT(losses.back(), 0.7 * losses.front()) << "nothing was learnt";
}

TEST(TrainCurves, Gpt) {
  expect_curve(
      "gpt",
      nn::Gpt({.vocabulary = Vocabulary, .context = Places, .width = 16, .heads = 2, .layers = 2}),
      token_batch);
}

TEST(TrainCurves, Mamba) {
  expect_curve("mamba",
               nn::MambaLm({.vocabulary = Vocabulary, .width = 16, .layers = 2, .state = 4}),
               token_batch);
}

TEST(TrainCurves, Cnn) {
  expect_curve("cnn",
               nn::Cnn({.image = {.channels = 2, .height = 8, .width = 8, .classes = 4},
                        .width = 4,
                        .stages = 2}),
               image_batch);
}

}  // namespace
}  // namespace ricci::curves_test
