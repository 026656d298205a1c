// [amp-training] Training in mixed precision: f32 masters, a scale of the loss, and steps that are
// skipped.
#include <cmath>

#include <gtest/gtest.h>

#include "ricci/model/training.h"
#include "ricci/op/ops.h"

#include "runtime/models.h"
#include "support/scratch_folder.h"

namespace ricci::testing {
namespace {

// mean (gain·tanh(x·w) - y)²; the gain says how large gradients are.
GraphModule model() {
  Graph g("model");
  const Value x = g.input("x", f32({16, 4}));
  const Value y = g.input("y", f32({16, 3}));
  const Value gain = g.input("gain", f32({}));
  const Value p = gain * tanh(matmul(x, g.param("w", f32({4, 3}))));
  g.set_outputs({reduce(square(p - y), {.op = ReduceKind::Mean, .axes = {0, 1}})});
  return GraphModule::from_mir(g);
}

Feeds batch(double gain) {
  return {{"x", random_tensor(1, f32({16, 4}))},
          {"y", random_tensor(2, f32({16, 3}))},
          {"gain", Tensor::from_numbers<double>(f32({}), std::vector<double>{gain})}};
}

TrainingStep started_mixed(const TrainingOptions& options) {
  TrainingStep training = compile_training(model(), options);
  training.set_param("w", random_tensor(3, f32({4, 3})));
  return training;
}

TrainingOptions in_f16() {
  return {.optimizer = Adam{.learning_rate = 1e-2},
          .precision = PrecisionPolicy::auto_mixed_conservative(),
          .loss_scaling = LossScaling{.initial = 1024, .interval = 3}};
}

double largest_gap(const Tensor& a, const Tensor& b) {
  double gap = 0;
  const std::vector<double> x = a.numbers<double>();
  const std::vector<double> y = b.numbers<double>();
  for (std::size_t i = 0; i < x.size(); ++i) gap = std::max(gap, std::abs(x[i] - y[i]));
  return gap;
}

// Plain descent: Adam divides by the size of a gradient, and so makes much of its rounding.
TEST(RuntimeMixedTraining, FollowsTrainingInF32) {
  TrainingOptions options{.optimizer = Sgd{.learning_rate = 0.1}};
  TrainingStep exact = started_mixed(options);
  options.precision = PrecisionPolicy::auto_mixed_conservative();
  options.loss_scaling = LossScaling{.initial = 1024};
  TrainingStep mixed = started_mixed(options);
  double first = 0;
  double last = 0;
  for (int i = 0; i < 40; ++i) {
    (void)exact.step(batch(1));
    last = mixed.step(batch(1)).loss.item();
    if (i == 0) first = last;
  }
  EXPECT_LT(last, first);
  EXPECT_EQ(mixed.param("w").dtype(), DType::F32);
  EXPECT_LT(largest_gap(exact.param("w"), mixed.param("w")), 2e-3);
}

// In f32 a power of two changes no bit of a gradient, so that a scale must leave no trace.
TEST(RuntimeMixedTraining, TheScaleCancels) {
  TrainingOptions options{.optimizer = Sgd{.learning_rate = 0.1}};
  TrainingStep plain = started_mixed(options);
  options.loss_scaling = LossScaling{.initial = 4096, .interval = 2};
  TrainingStep scaled = started_mixed(options);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(plain.step(batch(1)).loss.item(), scaled.step(batch(1)).loss.item());
    EXPECT_TRUE(plain.param("w").identical(scaled.param("w"))) << "step " << i;
  }
  EXPECT_EQ(scaled.loss_scale(), 4096 * 8);  // grown at steps 2, 4 and 6
  EXPECT_EQ(plain.loss_scale(), 1);
}

TEST(RuntimeMixedTraining, SkipsStepsThatAreNotFinite) {
  TrainingStep training = started_mixed(in_f16());
  EXPECT_EQ(training.loss_scale(), 1024);
  (void)training.step(batch(1));
  const Tensor w = training.param("w");
  const Tensor first = training.state("w", "first");
  EXPECT_EQ(training.steps(), 1);

  (void)training.step(batch(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(training.param("w").identical(w));
  EXPECT_TRUE(training.state("w", "first").identical(first));
  EXPECT_EQ(training.steps(), 1);
  EXPECT_EQ(training.loss_scale(), 512);

  for (int i = 0; i < 3; ++i) (void)training.step(batch(1));
  EXPECT_EQ(training.steps(), 4);
  EXPECT_EQ(training.loss_scale(), 1024) << "three good steps since";
  EXPECT_FALSE(training.param("w").identical(w));
}

TEST(RuntimeMixedTraining, GoesOnFromAFileWithTheSameBits) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/state.npz";
  TrainingStep a = started_mixed(in_f16());
  (void)a.step(batch(std::numeric_limits<double>::infinity()));
  for (int i = 0; i < 2; ++i) (void)a.step(batch(1));
  a.save(path);
  TrainingStep b = started_mixed(in_f16());
  b.restore(path);
  EXPECT_EQ(b.loss_scale(), 512);
  for (int i = 0; i < 2; ++i) {
    (void)a.step(batch(1));
    (void)b.step(batch(1));
  }
  EXPECT_TRUE(a.param("w").identical(b.param("w")));
  EXPECT_EQ(a.loss_scale(), b.loss_scale());
}

// From infinity no backing off leads back.
TEST(RuntimeMixedTraining, KeepsTheScaleFinite) {
  const auto one_step_with = [](double scale) {
    TrainingStep training =
        started_mixed({.optimizer = Sgd{.learning_rate = 0.1},
                       .loss_scaling = LossScaling{.initial = scale, .growth = 4, .interval = 1}});
    for (int i = 0; i < 3; ++i) (void)training.step(batch(1e-20));
    EXPECT_EQ(training.steps(), 3);
    return training.loss_scale();
  };
  EXPECT_EQ(one_step_with(0x1p120), 0x1p126);
  EXPECT_EQ(one_step_with(0x1p125), 0x1p127);
}

// The cotangent of the loss is another input, whatever the model calls its own.
TEST(RuntimeMixedTraining, LeavesInputsOfTheModelAlone) {
  const auto trained = [](const std::string& name) {
    Graph g("named");
    const Value x = g.input(name, f32({3}));
    g.set_outputs(
        {reduce(square(g.param("w", f32({3})) * x - 1.0), {.op = ReduceKind::Sum, .axes = {0}})});
    TrainingStep training = compile_training(
        g, {.optimizer = Sgd{.learning_rate = 0.1}, .loss_scaling = LossScaling{.initial = 8}});
    training.set_param("w", random_tensor(1, f32({3})));
    (void)training.step({{name, random_tensor(2, f32({3}))}});
    return training.param("w");
  };
  EXPECT_TRUE(trained("d_output").identical(trained("x")));
}

TEST(RuntimeMixedTraining, RefusesNumbersWithoutSense) {
  const auto refused = [](LossScaling scaling, const std::string& word) {
    try {
      (void)make_training_graph(model(), {.loss_scaling = scaling});
      ADD_FAILURE() << word << " was accepted";
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  };
  refused({.initial = 0}, "initial");
  refused({.growth = 0.5}, "growth");
  refused({.backoff = 2}, "backoff");
  refused({.interval = 0}, "interval");
}

}  // namespace
}  // namespace ricci::testing
