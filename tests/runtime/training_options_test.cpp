// Options of training steps: schedules, groups, clipping, accumulation, averages, master copies,
// and that going on from a file gives the same bits with all of them.
#include <cmath>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "ricci/model/training.h"

#include "runtime/models.h"

namespace ricci::testing {
namespace {

// mean (tanh(x·w1)·w2 + b - y)²
Graph two_layers(std::int64_t batch = 8, DType dtype = DType::F32) {
  Graph g("two_layers");
  const Value x = g.input("x", {dtype, {batch, 3}});
  const Value h = tanh(matmul(x, g.param("w1", {dtype, {3, 4}})));
  const Value p = matmul(h, g.param("w2", {dtype, {4, 2}})) + g.param("b", {dtype, {2}});
  g.set_outputs({mean(square(p - g.input("y", {dtype, {batch, 2}})))});
  return g;
}

const std::vector<std::string> Names = {"w1", "w2", "b"};

TrainingStep start_training(const TrainingOptions& options, std::int64_t batch = 8,
                            DType dtype = DType::F32) {
  TrainingStep training = compile_training(two_layers(batch, dtype), options);
  training.set_param("w1", random_tensor(1, {dtype, {3, 4}}));
  training.set_param("w2", random_tensor(2, {dtype, {4, 2}}));
  training.set_param("b", random_tensor(3, {dtype, {2}}));
  return training;
}

Feeds data(std::uint64_t seed, std::int64_t batch = 8, DType dtype = DType::F32) {
  return {{"x", random_tensor(seed, {dtype, {batch, 3}})},
          {"y", random_tensor(seed + 100, {dtype, {batch, 2}})}};
}

// The rows of several feeds in one.
Feeds together(const std::vector<Feeds>& parts, DType dtype) {
  Feeds out;
  for (const auto& [name, first] : parts[0]) {
    std::vector<double> rows;
    for (const Feeds& part : parts) {
      const std::vector<double> numbers = part.at(name).numbers<double>();
      rows.insert(rows.end(), numbers.begin(), numbers.end());
    }
    const auto count = static_cast<std::int64_t>(parts.size());
    const Type type{dtype, {first.dims()[0] * count, first.dims()[1]}};
    out.emplace(name, Tensor::from_numbers<double>(type, rows));
  }
  return out;
}

// All optimisers with rates that move something.
std::vector<Optimizer> all_optimizers() {
  std::vector<Optimizer> all;
  for (const std::string_view name : optimizer_names()) {
    all.push_back(optimizer_named(name));
    std::visit([](auto& o) { o.learning_rate = 0.02; }, all.back());
  }
  return all;
}

std::string refused(const TrainingOptions& options) {
  try {
    (void)make_training_graph(GraphModule::from_graph(two_layers()), options);
    return "nothing";
  } catch (const UserError& e) {
    return e.diagnostic().message;
  }
}

TEST(RuntimeTrainingOptions, EveryOptimiserLowersTheLoss) {
  for (const Optimizer& optimizer : all_optimizers()) {
    SCOPED_TRACE(name(optimizer));
    TrainingStep training = start_training({.optimizer = optimizer});
    const Feeds feeds = data(7);
    const double first = training.step(feeds).loss.item();
    for (int i = 0; i < 60; ++i) (void)training.step(feeds);
    EXPECT_LT(training.step(feeds).loss.item(), 0.9 * first);
  }
}

TEST(RuntimeTrainingOptions, ASchedulesRateIsThatOfItsStep) {  // [FE-4b]
  const Schedule falling = linear(0.2, 0, {.steps = 4});
  TrainingStep scheduled = start_training({.optimizer = Sgd{.learning_rate = falling}});
  TrainingStep fed = start_training({.optimizer = Sgd{}, .learning_rate_input = true});
  for (std::int64_t t = 0; t < 6; ++t) {
    Feeds feeds = data(11);
    (void)scheduled.step(feeds);
    const auto rate = static_cast<float>(falling.at(t));
    feeds.emplace("learning_rate", Tensor::of<float>({}, {rate}));
    (void)fed.step(feeds);
    EXPECT_TRUE(close(scheduled.param("w1"), fed.param("w1"), {1e-6, 1e-7})) << t;
  }
  EXPECT_DOUBLE_EQ(learning_rate(Sgd{.learning_rate = falling}), 0.2);
  EXPECT_DOUBLE_EQ((falling * Schedule(0.5)).at(1), 0.075);
}

TEST(RuntimeTrainingOptions, GroupsHaveTheirOwnWays) {
  TrainingStep grouped = start_training(
      {.optimizer = Sgd{.learning_rate = 0.1},
       .groups = {
           {.params = {"b"}, .frozen = true},
           {.params = {"w?"}, .chosen = {}, .learning_rate_factor = 0.5, .weight_decay = 0.2}}});
  TrainingStep same_rate = start_training(
      {.optimizer = Sgd{.learning_rate = 0.05, .weight_decay = 0.2}, .params = {"w1", "w2"}});
  const Tensor b = grouped.param("b");
  for (std::uint64_t i = 0; i < 3; ++i) {
    (void)grouped.step(data(i));
    (void)same_rate.step(data(i));
  }
  EXPECT_TRUE(same(grouped.param("b"), b));
  for (const char* name : {"w1", "w2"}) {
    EXPECT_TRUE(close(grouped.param(name), same_rate.param(name), {1e-5, 1e-6})) << name;
  }

  const auto is_vector = [](const std::string&, const Type& type) { return type.rank() == 1; };
  TrainingStep mixed =
      start_training({.optimizer = Muon{}, .groups = {{.chosen = is_vector, .optimizer = Lion{}}}});
  (void)mixed.step(data(1));
  EXPECT_EQ(mixed.graph().trained[0].slots, std::vector<std::string>{"momentum"});
  EXPECT_EQ(mixed.graph().trained[2].slots, std::vector<std::string>{"first"});
  EXPECT_NO_THROW((void)mixed.state("b", "first"));
  EXPECT_THROW((void)mixed.state("b", "momentum"), UserError);
}

TEST(RuntimeTrainingOptions, GradientsAreClippedByValue) {
  const double limit = 1e-3;
  TrainingStep training =
      start_training({.optimizer = Sgd{.learning_rate = 1}, .clip_value = limit});
  const Tensor before = training.param("w2");
  (void)training.step(data(4));
  const std::vector<double> from = before.numbers<double>();
  const std::vector<double> to = training.param("w2").numbers<double>();
  int at_limit = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    EXPECT_LE(std::abs(to[i] - from[i]), limit * 1.001);
    if (std::abs(to[i] - from[i]) > limit * 0.999) ++at_limit;
  }
  EXPECT_GT(at_limit, 0);
}

TEST(RuntimeTrainingOptions, AccumulatedStepsAreOneLargeBatch) {
  for (const bool scaled : {false, true}) {
    for (Optimizer optimizer : all_optimizers()) {
      SCOPED_TRACE(std::string(name(optimizer)) + (scaled ? " scaled" : ""));
      // A side longer than the other has directions without a gradient, whose bases are as the last
      // bits of a sum have them.
      if (auto* soap = std::get_if<Soap>(&optimizer)) soap->longest_side = 3;
      TrainingOptions options{.optimizer = optimizer, .clip_norm = 0.1, .ema = 0.9};
      if (scaled) options.loss_scaling = LossScaling{.initial = 16, .interval = 4};
      // Sophia's estimate is made of the last batch; here its Hessian has no part yet.
      TrainingStep whole = start_training(options, 24, DType::F64);
      options.accumulate = 3;
      TrainingStep parts = start_training(options, 8, DType::F64);
      for (std::uint64_t i = 0; i < 3; ++i) {
        if (i > 0 && curvature_interval(optimizer)) break;
        std::vector<Feeds> batches;
        for (std::uint64_t k = 0; k < 3; ++k) {
          const Tensor before = parts.param("w1");
          batches.push_back(data(10 * i + k, 8, DType::F64));
          (void)parts.step(batches.back());
          // The first step of Soap only takes bases.
          const bool moves = k == 2 && (i > 0 || !std::holds_alternative<Soap>(optimizer));
          EXPECT_EQ(same(before, parts.param("w1")), !moves);
        }
        EXPECT_EQ(parts.steps(), static_cast<std::int64_t>(i + 1));
        (void)whole.step(together(batches, DType::F64));
      }
      for (const std::string& name : Names) {
        EXPECT_TRUE(close(parts.param(name), whole.param(name), {1e-9, 1e-10})) << name;
        EXPECT_TRUE(close(parts.averaged(name), whole.averaged(name), {1e-9, 1e-10})) << name;
      }
    }
  }
}

TEST(RuntimeTrainingOptions, AveragesFollowTheirFormula) {
  TrainingStep training = start_training({.optimizer = Sgd{.learning_rate = 0.3}, .ema = 0.8});
  EXPECT_TRUE(same(training.averaged("w1"), training.param("w1")));
  std::vector<double> expected = training.param("w1").numbers<double>();
  for (std::uint64_t i = 0; i < 4; ++i) {
    (void)training.step(data(i));
    const std::vector<double> now = training.param("w1").numbers<double>();
    for (std::size_t k = 0; k < now.size(); ++k) expected[k] = 0.8 * expected[k] + 0.2 * now[k];
  }
  const Tensor wanted = Tensor::from_numbers<double>(f32({3, 4}), expected);
  EXPECT_TRUE(close(training.averaged("w1"), wanted, {1e-6, 1e-6}));
  EXPECT_TRUE(same(training.averaged("w1"), training.state("w1", "ema")));

  const std::string path = ::testing::TempDir() + "ricci_averaged.npz";
  training.save_averaged(path);
  TrainingStep other = compile_training(two_layers());
  other.load_params(path);
  EXPECT_TRUE(same(other.param("w1"), training.averaged("w1")));
  std::filesystem::remove(path);

  training.set_param("w1", Tensor::splat(f32({3, 4}), 0.25));  // begins anew
  EXPECT_TRUE(same(training.averaged("w1"), training.param("w1")));
}

// A step of a thousandth of a bf16 number is less than half of its spacing.
TEST(RuntimeTrainingOptions, NarrowParamsMoveByTheirMasterCopies) {  // [FE-5b]
  for (const DType dtype : {DType::BF16, DType::F16}) {
    const double tiny = dtype == DType::BF16 ? 1e-4 : 1e-5;
    const TrainingOptions with{.optimizer = Lion{.learning_rate = tiny, .weight_decay = 0}};
    TrainingOptions without = with;
    without.master_copies = false;
    TrainingStep moving = start_training(with, 8, dtype);
    TrainingStep stuck = start_training(without, 8, dtype);
    for (TrainingStep* t : {&moving, &stuck}) {
      t->set_param("w2", Tensor::splat({dtype, {4, 2}}, 1.0));
    }
    const Tensor before = moving.param("w2");
    for (int i = 0; i < 100; ++i) {
      (void)moving.step(data(5, 8, dtype));
      (void)stuck.step(data(5, 8, dtype));
    }
    EXPECT_TRUE(same(stuck.param("w2"), before)) << name(dtype);
    EXPECT_FALSE(same(moving.param("w2"), before)) << name(dtype);
    EXPECT_EQ(moving.state("w2", "master").dtype(), DType::F32);
    const Tensor master = moving.state("w2", "master");
    const Tensor rounded = Tensor::from_numbers<double>({dtype, {4, 2}}, master.numbers<double>());
    EXPECT_TRUE(same(moving.param("w2"), rounded));
    EXPECT_THROW((void)stuck.state("w2", "master"), UserError);
  }
}

TEST(RuntimeTrainingOptions, GoesOnFromAFileBitForBit) {
  const std::string path = ::testing::TempDir() + "ricci_training_options.npz";
  std::size_t k = 0;
  for (const Optimizer& optimizer : all_optimizers()) {
    SCOPED_TRACE(name(optimizer));
    const DType dtype = k % 3 == 0 ? DType::BF16 : DType::F32;
    TrainingOptions options{.optimizer = optimizer, .clip_norm = 1.0, .ema = 0.99};
    if (k % 2 == 0) options.accumulate = 2;
    if (k % 4 == 1) options.loss_scaling = LossScaling{.initial = 8, .interval = 2};
    ++k;
    TrainingStep whole = start_training(options, 8, dtype);
    for (std::uint64_t i = 0; i < 5; ++i) (void)whole.step(data(i, 8, dtype));
    whole.save(path);
    TrainingStep resumed = compile_training(two_layers(8, dtype), options);
    resumed.restore(path);
    for (std::uint64_t i = 5; i < 9; ++i) {
      EXPECT_TRUE(same(resumed.step(data(i, 8, dtype)).loss, whole.step(data(i, 8, dtype)).loss));
    }
    for (const std::string& name : Names) {
      EXPECT_TRUE(same(resumed.param(name), whole.param(name))) << name;
      EXPECT_TRUE(same(resumed.averaged(name), whole.averaged(name))) << name;
    }
  }
  std::filesystem::remove(path);
}

// s · (H s) with random signs: 2 ± 1 and 3 ± 1 for the Hessian [[2, 1], [1, 3]], anew every time.
TEST(RuntimeTrainingOptions, HessiansAreEstimatedWithRandomSigns) {
  Graph g("bowl");
  const Value p = g.param("p", f64({2, 1}));
  const Value h = g.constant(Tensor::of<double>({2, 2}, {2, 1, 1, 3}));
  g.set_outputs({sum(p * matmul(h, p)) * 0.5});
  TrainingStep training = compile_training(g, {.optimizer = Sophia{.beta2 = 0, .interval = 2}});
  training.set_param("p", Tensor::of<double>({2, 1}, {1, -1}));
  std::set<double> seen;
  for (int i = 0; i < 20; ++i) {
    (void)training.step({});
    const std::vector<double> now = training.state("p", "hessian").numbers<double>();
    seen.insert(now[0]);
    EXPECT_NEAR(now[1] - now[0], 1, 1e-12);
    (void)training.step({});  // between two estimates
    EXPECT_EQ(training.state("p", "hessian").numbers<double>(), now);
  }
  EXPECT_EQ(seen, (std::set<double>{1, 3}));
}

// A step whose gradients are not finite is none of those that are accumulated.
TEST(RuntimeTrainingOptions, SkippedStepsAreNotAccumulated) {
  const TrainingOptions options{.optimizer = Sgd{.learning_rate = 0.1},
                                .accumulate = 2,
                                .loss_scaling = LossScaling{.initial = 4}};
  TrainingStep skipping = start_training(options);
  TrainingStep plain = start_training(options);
  Feeds bad = data(50);
  bad.insert_or_assign("x", Tensor::splat(f32({8, 3}), std::numeric_limits<double>::infinity()));
  bad.insert_or_assign("y", Tensor::splat(f32({8, 2}), std::numeric_limits<double>::infinity()));
  (void)skipping.step(data(1));
  (void)skipping.step(bad);
  EXPECT_EQ(skipping.steps(), 0);
  EXPECT_EQ(skipping.loss_scale(), 2);
  (void)skipping.step(data(2));
  (void)plain.step(data(1));
  (void)plain.step(data(2));
  EXPECT_EQ(skipping.steps(), 1);
  EXPECT_TRUE(close(skipping.param("w1"), plain.param("w1"), {1e-6, 1e-7}));
}

// What differs from zeros at first is made by the first step: arrays of zeros will do.
TEST(RuntimeTrainingOptions, StateIsZerosBeforeTheFirstStep) {
  TrainingStep training = start_training({.optimizer = Adagrad{.initial = 0.5}});
  EXPECT_TRUE(same(training.state("b", "sum"), Tensor::zeros(f32({2}))));
  (void)training.step(data(1));
  for (const double s : training.state("b", "sum").numbers<double>()) EXPECT_GE(s, 0.5);
}

TEST(RuntimeTrainingOptions, RefusesWhatMakesNoSense) {
  EXPECT_EQ(refused({.clip_value = 0.0}), "clip_value is 0, not a positive number");
  EXPECT_EQ(refused({.accumulate = 0}), "accumulate is 0, not a count from 1 to 16777216");
  EXPECT_EQ(refused({.ema = 1.0}), "ema is 1, not a number in [0, 1)");
  EXPECT_EQ(refused({.groups = {{.params = {"bias*"}}}}), "group 0 of params ('bias*') has none");
  EXPECT_EQ(refused({.groups = {{.params = {"*"}, .frozen = true}}}),
            "'two_layers' has no params to train");
  EXPECT_EQ(refused({.groups = {{.params = {"b"}, .learning_rate_factor = -1}}}),
            "a group's learning_rate_factor is -1, not a number from 0 on");
  EXPECT_EQ(refused({.groups = {{.params = {"b"}, .optimizer = Lion{.beta1 = 1}}}}),
            "beta1 is 1, not a number in [0, 1)");
  EXPECT_EQ(refused({.optimizer = ScheduleFreeAdamW{.beta1 = 0}}),
            "beta1 is 0, not a positive number");
  EXPECT_EQ(refused({.optimizer = Sophia{.interval = 0}}), "interval is 0, not a count from 1 on");
  EXPECT_EQ(refused({.optimizer = Adafactor{.clip = 0}}), "clip is 0, not a positive number");
  EXPECT_EQ(refused({.groups = {{.params = {"b"}}}}), "nothing");
  EXPECT_THROW((void)optimizer_named("adamax"), UserError);
}

}  // namespace
}  // namespace ricci::testing
