// The gradient of the cross entropy, checked against differences of the loss.
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/interp/interpreter.h"

#include "support/compare.h"

namespace ricci::testing::rule_loss_test {
namespace {

TEST(CrossEntropy, GradientIsTheSlopeOfTheLoss) {
  Graph g;
  const Value logits = g.input("logits", f64({4, 4}));
  const Value labels = g.input("labels", i32({4}));
  const Value weight = g.input("weight", f64({4}));
  const Value loss = sum(softmax_cross_entropy_with_logits(logits, labels) * weight);
  g.set_outputs({loss, softmax_cross_entropy_backward(logits, labels, weight)});

  const std::vector<double> classes = {0, 3, 1, 1};
  Feeds feeds = {{"logits", random_tensor(1, logits.type())},
                 {"labels", Tensor::from_numbers<double>(labels.type(), classes)},
                 {"weight", random_tensor(2, weight.type())}};
  const auto gradient = interpret(g, feeds)[1].numbers<double>();
  const std::vector<double> base = feeds.at("logits").numbers<double>();
  const auto loss_at = [&](std::size_t i, double step) {
    std::vector<double> moved = base;
    moved[i] += step;
    feeds.at("logits") = Tensor::from_numbers<double>(logits.type(), moved);
    return interpret(g, feeds)[0].numbers<double>()[0];
  };
  constexpr double Step = 1e-5;
  for (std::size_t i = 0; i < base.size(); ++i) {
    const double slope = (loss_at(i, Step) - loss_at(i, -Step)) / (2 * Step);
    EXPECT_NEAR(gradient[i], slope, 1e-8) << i;
  }
}

}  // namespace
}  // namespace ricci::testing::rule_loss_test
