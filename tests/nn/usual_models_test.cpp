// Models that are ready to be trained: shapes, what they refuse, and that they learn.
#include <gtest/gtest.h>

#include "ricci/nn.h"
#include "ricci/nn/models.h"
#include "ricci/support/error.h"
#include "ricci/train/digits.h"

namespace ricci::usual_models_test {
namespace {

TEST(NnUsualModels, GiveLogits) {
  const Array images = normal(Key(1), {2, 3, 8, 8});
  const nn::ImageOptions image{.channels = 3, .height = 8, .width = 8, .classes = 5};
  EXPECT_EQ(nn::Cnn({.image = image, .width = 4})(images).shape(), (Dims{2, 5}));
  EXPECT_EQ(
      nn::Vit({.image = image, .patch = 4, .width = 8, .heads = 2, .layers = 1})(images).shape(),
      (Dims{2, 5}));
  EXPECT_EQ(nn::Mlp({.inputs = 3 * 64, .classes = 5, .width = 7})(images).shape(), (Dims{2, 5}));
  const Array tokens = randint(Key(2), {2, 6}, 0, 11);
  EXPECT_EQ(nn::MambaLm({.vocabulary = 11, .width = 8, .layers = 1, .state = 4})(tokens).shape(),
            (Dims{2, 6, 11}));
}

TEST(NnUsualModels, NoPlaceSeesThoseBehindIt) {
  const nn::MambaLm model({.vocabulary = 11, .width = 8, .layers = 2, .state = 4});
  const Array a = array({{1, 2, 3, 4, 5}});
  const Array b = array({{1, 2, 3, 9, 9}});
  EXPECT_TRUE(bool(array_equal(model(a)(0, slice(0, 3)), model(b)(0, slice(0, 3)))));
}

TEST(NnUsualModels, RefuseWhatCannotBe) {
  const nn::ImageOptions image{.channels = 1, .height = 8, .width = 8, .classes = 5};
  EXPECT_THROW(nn::Cnn({.image = image, .stages = 4}), UserError);
  EXPECT_THROW(nn::Vit({.image = image, .patch = 3}), UserError);
  EXPECT_THROW(nn::MambaLm({.layers = 0}), UserError);
}

TEST(NnUsualModels, DrawnDigitsCanBeLearnt) {
  const DrawnDigits digits = drawn_digits(256, 1, 12);
  EXPECT_EQ(digits.images.type().to_string(), "f32[256, 1, 12, 12]");
  EXPECT_EQ(digits.images.bytes().size(), drawn_digits(256, 1, 12).images.bytes().size());
  nn::seed(1);
  struct Digits {
    Array x, y;
  };
  const auto loss = [](const nn::Mlp& net, const Digits& b) {
    return cross_entropy(net(b.x), b.y);
  };
  Trainer train(nn::Mlp({.inputs = 144, .width = 64, .layers = 1}), loss,
                AdamW{.learning_rate = 3e-3});
  const Digits all{digits.images, digits.labels};
  const double first = train(all).item();
  double last = first;
  for (int i = 0; i < 60; ++i) last = train(all).item();
  EXPECT_LT(last, 0.3 * first);
  EXPECT_THROW((void)drawn_digits(1, 1, 7), UserError);
}

}  // namespace
}  // namespace ricci::usual_models_test
