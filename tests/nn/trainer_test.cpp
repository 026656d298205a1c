// A model, a loss and an optimiser: what a step does to params and buffers, what is random in it,
// what is kept and restored.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "ricci/nn.h"
#include "ricci/support/error.h"

#include "support/every_device.h"

namespace ricci::trainer_test {
namespace {

using Numbers = std::vector<double>;

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

std::string temporary(const char* name) {
  return (std::filesystem::temp_directory_path() / name).string();
}

struct Batch {
  Array x, y;
};
struct Net {
  nn::Linear hidden{3, 16};
  nn::BatchNorm norm{16};
  nn::Dropout drop{0.1};
  nn::Linear out{16, 1};
  Array operator()(const Array& x) const { return out(drop(tanh(norm(hidden(x))))); }
};
Array squared_error(const Net& net, const Batch& b) { return mse(net(b.x), b.y); }

Batch draw(std::uint64_t seed, std::int64_t n) {
  const Array x = normal(Key(seed), {n, 3});
  return {x, sum(x * array({1.0, -2.0, 0.5}), 1, true)};
}

TEST(NnTrainer, TrainsWithBatchNormAndDropout) {  // [FE-4e]
  nn::seed(5);
  Trainer train(Net{}, squared_error, AdamW{.learning_rate = 2e-2});
  double first = 0;
  double last = 0;
  for (int i = 0; i < 120; ++i) {
    last = train(draw(static_cast<std::uint64_t>(i), 32)).item();
    if (i == 0) first = last;
  }
  EXPECT_LT(last, 0.2 * first);
  EXPECT_EQ(train.steps(), 120);
  EXPECT_EQ(train.compiled(), 1U);
  const Net net = train.model();
  const Batch test = draw(1000, 64);
  EXPECT_LT(squared_error(net, test).item(), 0.15 * first);
  // The running mean is the mean of what the norm sees, and not what it started from.
  const Array seen = mean(net.hidden(draw(2000, 4096).x), 0);
  EXPECT_GT(norm(net.norm.mean.value).item(), 0);
  EXPECT_TRUE(allclose(net.norm.mean.value, seen, 0.2, 0.25));
}

TEST(NnTrainer, NamesParamsByFields) {  // [FE-1e]
  Trainer train(Net{}, squared_error);
  train.compile(draw(1, 4));
  const std::vector<std::string> wanted = {"hidden.w",  "hidden.b", "norm.w", "norm.b",
                                           "norm.mean", "norm.var", "out.w",  "out.b"};
  EXPECT_EQ(leaf_names(train.model()), wanted);
  EXPECT_EQ(train.step().params(), wanted);
  const TrainingGraph& graph = train.graph();
  EXPECT_EQ(graph.trained.size(), 6U);
  EXPECT_EQ(graph.updated, (std::vector<std::string>{"norm.mean", "norm.var"}));
  EXPECT_EQ(train.steps(), 0);
}

// One step of plain descent is p - rate·gradient, with the gradient of `grad`.
TEST(NnTrainer, AStepIsTheOptimisersWithTheGradientOfTheLoss) {  // [FE-4g]
  nn::seed(3);
  struct Line {
    nn::Linear map{3, 1};
  };
  const auto loss = [](const Line& l, const Batch& b) { return mse(l.map(b.x), b.y); };
  const Line start;
  const Batch b = draw(4, 8);
  Trainer train(start, loss, Sgd{.learning_rate = 0.25});
  const Array value = train(b);
  EXPECT_TRUE(allclose(value, loss(start, b), 1e-6, 1e-7));
  const Line g = grad(loss)(start, b);
  EXPECT_TRUE(allclose(train.model().map.w, start.map.w - 0.25 * g.map.w, 1e-5, 1e-6));
  EXPECT_TRUE(allclose(train.model().map.b, start.map.b - 0.25 * g.map.b, 1e-5, 1e-6));
}

struct Dropped {
  Array scale = ones({1});
  nn::Dropout a{0.5}, b{0.5};
};
std::pair<Array, std::pair<Array, Array>> masks(const Dropped& net, const Array& x) {
  const Array first = net.a(x);
  const Array second = net.b(x);
  return {sum(first * net.scale), {first, second}};
}

TEST(NnTrainer, MasksDifferFromStepToStepAndFromCallToCall) {  // [FE-5a]
  Trainer train(Dropped{}, masks, Sgd{.learning_rate = 0.0}, {.seed = 7});
  const Array x = ones({200});
  const auto [l0, first] = train(x);
  const auto [l1, second] = train(x);
  EXPECT_FALSE(array_equal(first.first, second.first));
  EXPECT_FALSE(array_equal(first.first, first.second));
  // Kept elements are doubled; about half are kept.
  for (const double v : first.first.to_vector()) EXPECT_TRUE(v == 0 || v == 2) << v;
  EXPECT_NEAR(sum(first.first).item() / 400, 0.5, 0.15);
  // The seed decides them.
  Trainer again(Dropped{}, masks, Sgd{.learning_rate = 0.0}, {.seed = 7});
  EXPECT_TRUE(array_equal(again(x).second.first, first.first));
  Trainer other(Dropped{}, masks, Sgd{.learning_rate = 0.0}, {.seed = 8});
  EXPECT_FALSE(array_equal(other(x).second.first, first.first));
  // Outside of training there are none.
  EXPECT_TRUE(array_equal(nn::Dropout{0.5}(x), x));
}

TEST(NnTrainer, GoesOnFromAFile) {
  const std::string file = temporary("ricci_nn_trainer.safetensors");
  nn::seed(9);
  const Net start;
  Trainer whole(start, squared_error, AdamW{});
  Trainer half(start, squared_error, AdamW{});
  for (std::uint64_t i = 0; i < 6; ++i) {
    (void)whole(draw(i, 8));
    if (i < 3) (void)half(draw(i, 8));
  }
  save(file, half);
  Trainer rest(Net{}, squared_error, AdamW{});
  restore(file, rest);
  EXPECT_TRUE(array_equal(rest.model().out.w, half.model().out.w));
  for (std::uint64_t i = 3; i < 6; ++i) (void)rest(draw(i, 8));
  EXPECT_EQ(rest.steps(), 6);
  const std::vector<Array> a = leaves(whole.model());
  const std::vector<Array> b = leaves(rest.model());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(array_equal(a[i], b[i])) << i;
  std::filesystem::remove(file);
}

// A batch of another size is another program, which takes over params, state and count.
TEST(NnTrainer, MovesBetweenBatchSizes) {
  nn::seed(1);
  struct Line {
    nn::Linear map{3, 1};
  };
  const auto loss = [](const Line& l, const Batch& b) { return mse(l.map(b.x), b.y); };
  const Line start;
  Trainer train(start, loss, Adam{});
  Trainer single(start, loss, Adam{});
  const Batch small = draw(1, 4);
  const Batch twice{concat({small.x, small.x}), concat({small.y, small.y})};
  for (int i = 0; i < 4; ++i) {
    (void)(i % 2 == 0 ? train(small) : train(twice));  // the same loss either way
    (void)single(small);
  }
  EXPECT_EQ(train.compiled(), 2U);
  EXPECT_EQ(train.steps(), 4);
  EXPECT_TRUE(allclose(train.model().map.w, single.model().map.w, 1e-5, 1e-6));
}

TEST(NnTrainer, RunsOnTheDeviceItIsGiven) {
  nn::seed(1);
  const Net start;
  Trainer here(start, squared_error, Adam{});
  Trainer there(start, squared_error, Adam{}, {.device = Device::named("lir")});
  const Batch b = draw(1, 4);
  EXPECT_NEAR(here(b).item(), there(b).item(), 1e-5);
  EXPECT_TRUE(allclose(here.model().out.w, there.model().out.w, 1e-3, 1e-4));
}

TEST(NnTrainer, TrainsWhatItIsToldTo) {
  nn::seed(2);
  const Net start;
  Trainer train(start, squared_error, Sgd{.learning_rate = 0.1},
                {.trainable = [](std::string_view name) { return name.starts_with("out."); }});
  (void)train(draw(1, 8));
  const Net after = train.model();
  EXPECT_TRUE(array_equal(after.hidden.w, start.hidden.w));
  EXPECT_TRUE(array_equal(after.norm.w, start.norm.w));
  EXPECT_FALSE(array_equal(after.out.w, start.out.w));
  EXPECT_FALSE(array_equal(after.norm.mean.value, start.norm.mean.value));
  const std::string none = refusal([&] {
    Trainer t(start, squared_error, Sgd{}, {.trainable = [](std::string_view) { return false; }});
  });
  EXPECT_NE(none.find("no leaf of the model is trained"), std::string::npos) << none;
}

TEST(NnTrainer, OptionsReachTheTrainingStep) {
  Trainer train(Net{}, squared_error, Sgd{.learning_rate = 1.0},
                {.training = {.clip_norm = 1e-3, .learning_rate_input = true}});
  EXPECT_FALSE(train.gradient_norm());
  train.set_learning_rate(0);
  const Net before = train.model();
  (void)train(draw(1, 8));
  ASSERT_TRUE(train.gradient_norm());
  EXPECT_GT(*train.gradient_norm(), 1e-3);
  EXPECT_TRUE(array_equal(train.model().out.w, before.out.w));
  train.set_learning_rate(1);
  (void)train(draw(1, 8));
  EXPECT_FALSE(array_equal(train.model().out.w, before.out.w));
  EXPECT_LT(norm(train.model().out.w - before.out.w).item(), 1.01e-3);
}

TEST(NnTrainer, IsExportedForC) {
  if (!testing::has_device("cpu")) GTEST_SKIP() << "objects are for the CPU";
  Trainer train(Net{}, squared_error);
  train.compile(draw(1, 4));
  const std::string file = temporary("ricci_nn_step.o");
  export_c(file, train, {.name = "net"});
  const std::string header = temporary("ricci_nn_step.h");
  std::ifstream in(header);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  for (const char* word : {"net_run", "hidden_w", "norm_mean", "step_key"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
  std::filesystem::remove(file);
  std::filesystem::remove(header);
}

// What a loss captures is fed as it was when it was traced; draws of the generator are new.
TEST(NnTrainer, CapturesAndDrawsAreInputs) {
  const Array target = array({2.0, -1.0});
  const auto loss = [&](const Array& w, const Array& x) {
    return std::pair{mse(w * x, target), uniform({4})};
  };
  Trainer train(zeros({2}), loss, Sgd{.learning_rate = 0.5});
  const Array first = train(ones({2})).second;
  EXPECT_FALSE(array_equal(first, train(ones({2})).second));
  for (int i = 0; i < 30; ++i) (void)train(ones({2}));
  EXPECT_TRUE(allclose(train.model(), target, 1e-3, 1e-3));
}

TEST(NnTrainer, SaysWhatIsWrong) {
  Trainer train(Net{}, squared_error);
  EXPECT_NE(refusal([&] { (void)train.graph(); }).find("take a step, or call compile(batch)"),
            std::string::npos);
  EXPECT_NE(refusal([&] { train.set_learning_rate(1); }).find("learning_rate_input"),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)train(draw(1, 1)); }).find("at least two numbers"),
            std::string::npos);
  EXPECT_NE(refusal([&] { nn::Dropout{1.0}; }).find("[0, 1)"), std::string::npos);
}

TEST(NnTrainingScope, LoopsAndBatchesAreRefused) {
  const nn::Dropout drop{0.5};
  nn::TrainingScope training(Key(1));
  const auto one = [&](const Array& x) { return drop(x); };
  EXPECT_NE(refusal([&] { (void)vmap(one)(ones({2, 3})); }).find("one trace stands for many"),
            std::string::npos);
  // A scope of the example's own is fine.
  const auto keyed = [&](const Key& key, const Array& x) {
    nn::TrainingScope inner(key);
    return drop(x);
  };
  const Array keys = stack({Key(1).words(), Key(2).words()});
  const Array y =
      vmap([&](const Array& k, const Array& x) { return keyed(Key(k), x); })(keys, ones({2, 64}));
  EXPECT_FALSE(array_equal(y[0], y[1]));
}

TEST(NnTrainingScope, GivesAModelWithItsBuffers) {
  const nn::BatchNorm start{2};
  const Array x = array({{1.0, 2.0}, {3.0, 6.0}});
  const auto pass = jit([](const nn::BatchNorm& norm, const Array& v) {
    nn::TrainingScope training(Key(0));
    const Array once = norm(v);
    const Array twice = norm(v);  // follows what the first call has left
    return std::pair{once + twice, training.updated(norm)};
  });
  const auto [y, after] = pass(start, x);
  EXPECT_TRUE(allclose(after.mean.value, array({0.19 * 2, 0.19 * 4}), 1e-5, 1e-6));
  EXPECT_TRUE(allclose(after.var.value, array({0.81 + 0.19 * 2, 0.81 + 0.19 * 8}), 1e-5, 1e-6));
  EXPECT_FALSE(nn::is_training());
  {
    nn::TrainingScope training(Key(0));
    const nn::InferenceScope frozen;
    EXPECT_FALSE(nn::is_training());
    EXPECT_TRUE(allclose(start(x), x, 1e-4, 1e-4));
  }
  EXPECT_NE(refusal([&] { start.mean.update(x); }).find("outside of training"), std::string::npos);
}

TEST(NnTrainer, DecaysWhatItIsToldTo) {  // [FE-4f]
  struct Pair {
    Array w = ones({2}), b = ones({2});
  };
  const auto flat = [](const Pair& p, const Array& x) { return 0.0 * (sum(p.w) + sum(p.b) + x); };
  const auto is_weight = [](std::string_view name) { return name.ends_with("w"); };
  Trainer train(Pair{}, flat, AdamW{.learning_rate = 0.5, .weight_decay = 0.5},
                {.decay = is_weight});
  (void)train(array(1.0));
  EXPECT_EQ(train.model().w.to_vector(), (Numbers{0.75, 0.75}));
  EXPECT_EQ(train.model().b.to_vector(), (Numbers{1, 1}));
  // A group that says how much is not asked.
  Trainer grouped(
      Pair{}, flat, AdamW{.learning_rate = 0.5, .weight_decay = 0.5},
      {.decay = is_weight, .training = {.groups = {{.params = {"b"}, .weight_decay = 0.25}}}});
  (void)grouped(array(1.0));
  EXPECT_EQ(grouped.model().w.to_vector(), (Numbers{0.75, 0.75}));
  EXPECT_EQ(grouped.model().b.to_vector(), (Numbers{0.875, 0.875}));
}

// A struct with a constructor is a tree when it says how it is walked.
struct Scale {
  explicit Scale(std::int64_t n) : w(ones({n})) {}
  void visit(TreeVisitor& v) { v.visit("w", w); }
  Array w;
};
struct Scales {
  Scale first{2}, second{3};
  nn::Buffer count{zeros({1})};
};

TEST(NnTrees, StructsWithConstructorsVisitThemselves) {
  EXPECT_EQ(leaf_names(Scales{}), (std::vector<std::string>{"first.w", "second.w", "count"}));
  const auto f = jit(grad([](const Scales& s) { return sum(s.first.w) + 2 * sum(s.second.w); }));
  EXPECT_EQ(f(Scales{}).second.w.to_vector(), (Numbers{2, 2, 2}));
  EXPECT_EQ(f(Scales{}).count.value.to_vector(), (Numbers{0}));
  struct Nothing {};
  EXPECT_TRUE(leaves(Nothing{}).empty());
}

}  // namespace
}  // namespace ricci::trainer_test
