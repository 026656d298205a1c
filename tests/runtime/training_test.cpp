// Training steps: against the optimisers written out by hand, and what is kept between steps.
#include "ricci/model/training.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "ricci/build/norm.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/model/autodiff.h"
#include "ricci/op/ops.h"
#include "ricci/transform/grad.h"

#include "runtime/models.h"

namespace ricci::testing {
namespace {

// mean (x·w + b - y)², with the prediction as a second output.
GraphModule regression(std::int64_t batch = 8, DType dtype = DType::F32) {
  Graph g("regression");
  const Value x = g.input("x", {dtype, {batch, 3}});
  const Value y = g.input("y", {dtype, {batch, 2}});
  const Value p = matmul(x, g.param("w", {dtype, {3, 2}})) + g.param("b", {dtype, {2}});
  g.set_outputs({reduce(square(p - y), {.op = ReduceKind::Mean, .axes = {0, 1}}), p});
  return GraphModule::from_mir(g);
}

Feeds batch_of(std::uint64_t seed, DType dtype = DType::F32) {
  const Tensor x = random_tensor(seed, {dtype, {8, 3}});
  const Tensor y = random_tensor(seed + 1000, {dtype, {8, 2}});
  return {{"x", x}, {"y", y}};
}

using Numbers = std::vector<double>;

// What the formulas say, in double.
struct ByHand {
  Optimizer optimizer;
  std::map<std::string, Numbers> params;
  std::map<std::string, Numbers> first = {};
  std::map<std::string, Numbers> second = {};
  int count = 0;

  void step(const std::map<std::string, Numbers>& gradients, double rate) {
    ++count;
    for (auto& [name, p] : params) {
      Numbers& m = first[name];
      Numbers& v = second[name];
      m.resize(p.size());
      v.resize(p.size());
      for (std::size_t i = 0; i < p.size(); ++i) {
        move(p[i], m[i], v[i], gradients.at(name)[i], rate);
      }
    }
  }

  void move(double& p, double& m, double& v, double g, double rate) const {
    if (const auto* s = std::get_if<Sgd>(&optimizer)) {
      g += s->weight_decay * p;
      m = s->momentum * m + g;
      p -= rate * (s->nesterov ? g + s->momentum * m : m);
      return;
    }
    const auto* w = std::get_if<AdamW>(&optimizer);
    const auto* a = std::get_if<Adam>(&optimizer);
    const double beta1 = w != nullptr ? w->beta1 : a->beta1;
    const double beta2 = w != nullptr ? w->beta2 : a->beta2;
    const double epsilon = w != nullptr ? w->epsilon : a->epsilon;
    if (a != nullptr) g += a->weight_decay * p;
    if (w != nullptr) p *= 1 - rate * w->weight_decay;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    p -= rate * (m / (1 - std::pow(beta1, count))) /
         (std::sqrt(v / (1 - std::pow(beta2, count))) + epsilon);
  }
};

// [training-step]
TEST(RuntimeTraining, OptimisersFollowTheirFormulas) {
  const std::vector<Optimizer> all = {
      Sgd{.learning_rate = 0.1},
      Sgd{.learning_rate = 0.1, .momentum = 0.9},
      Sgd{.learning_rate = 0.1, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true},
      Adam{.learning_rate = 0.05},
      Adam{.learning_rate = 0.05, .beta1 = 0.8, .weight_decay = 0.1},
      AdamW{.learning_rate = 0.05, .beta2 = 0.99, .epsilon = 1e-3, .weight_decay = 0.2}};
  for (std::size_t k = 0; k < 2 * all.size(); ++k) {
    SCOPED_TRACE(k);
    const Optimizer& optimizer = all[k / 2];
    const std::optional<double> clip = k % 2 == 0 ? std::nullopt : std::optional(0.5);
    TrainingStep training =
        compile_training(regression(8, DType::F64), {.optimizer = optimizer, .clip_norm = clip});
    ByHand hand{optimizer, {}};
    Feeds params = {{"w", random_tensor(1, f64({3, 2}))}, {"b", random_tensor(2, f64({2}))}};
    for (const auto& [name, value] : params) {
      training.set_param(name, value);
      hand.params[name] = value.numbers<double>();
    }
    const Graph gradient = value_and_grad(regression(8, DType::F64).graph(), {"w", "b"}).graph;
    for (std::uint64_t i = 0; i < 5; ++i) {
      Feeds feeds = batch_of(10 + i, DType::F64);
      const TrainingStep::Result result = training.step(feeds);
      for (const auto& [name, p] : hand.params) {
        feeds.insert_or_assign(name,
                               Tensor::from_numbers<double>(params.at(name).type(), std::span(p)));
      }
      const std::vector<Tensor> expected = interpret(gradient, feeds);
      EXPECT_TRUE(close(result.loss, expected[0], {1e-6, 1e-6}));
      ASSERT_EQ(result.aux.size(), 1U);
      EXPECT_TRUE(close(result.aux[0], expected[1], {1e-6, 1e-6}));
      std::map<std::string, Numbers> g = {{"w", expected[2].numbers<double>()},
                                          {"b", expected[3].numbers<double>()}};
      double norm = 0;
      for (const auto& [name, values] : g) {
        for (const double x : values) norm += x * x;
      }
      norm = std::sqrt(norm);
      if (clip) {
        ASSERT_TRUE(result.gradient_norm);
        EXPECT_NEAR(*result.gradient_norm, norm, 1e-6);
        for (auto& [name, values] : g) {
          for (double& x : values) x *= std::min(1.0, *clip / norm);
        }
      }
      hand.step(g, learning_rate(optimizer));
    }
    for (const auto& [name, p] : hand.params) {
      const Tensor expected = Tensor::from_numbers<double>(params.at(name).type(), std::span(p));
      EXPECT_TRUE(close(training.param(name), expected, {1e-5, 1e-6})) << name;
    }
    EXPECT_EQ(training.steps(), 5);
  }
}

TrainingStep started(const TrainingOptions& options = {}) {
  TrainingStep training = compile_training(regression(), options);
  training.set_param("w", random_tensor(1, f32({3, 2})));
  training.set_param("b", random_tensor(2, f32({2})));
  return training;
}

TEST(RuntimeTraining, LossFalls) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::F16}) {
    TrainingStep training =
        compile_training(regression(8, dtype), {.optimizer = AdamW{.learning_rate = 0.05}});
    training.set_param("w", random_tensor(1, {dtype, {3, 2}}));
    training.set_param("b", random_tensor(2, {dtype, {2}}));
    const Feeds feeds = batch_of(5, dtype);
    const double first = training.step(feeds).loss.item();
    for (int i = 0; i < 60; ++i) (void)training.step(feeds);
    EXPECT_LT(training.step(feeds).loss.item(), first / 2) << name(dtype);
    EXPECT_EQ(training.param("w").dtype(), dtype);
  }
}

TEST(RuntimeTraining, LearningRateCanBeFed) {
  TrainingStep fed = started({.optimizer = Sgd{}, .learning_rate_input = true});
  TrainingStep fixed = started({.optimizer = Sgd{.learning_rate = 0.25}});
  Feeds feeds = batch_of(3);
  (void)fixed.step(feeds);
  EXPECT_THROW((void)fed.step(feeds), UserError);
  feeds.emplace("learning_rate", Tensor::of<float>({}, {0.25F}));
  (void)fed.step(feeds);
  EXPECT_TRUE(same(fed.param("w"), fixed.param("w")));
  feeds.insert_or_assign("learning_rate", Tensor::of<float>({}, {0}));
  (void)fed.step(feeds);
  EXPECT_TRUE(same(fed.param("w"), fixed.param("w")));
}

TEST(RuntimeTraining, SomeParamsCanBeLeftAlone) {
  TrainingStep training = started({.params = {"b"}});
  const Tensor w = training.param("w");
  const Tensor b = training.param("b");
  (void)training.step(batch_of(1));
  EXPECT_TRUE(same(training.param("w"), w));
  EXPECT_FALSE(same(training.param("b"), b));
  EXPECT_THROW((void)training.state("w", "first"), UserError);
  EXPECT_THROW((void)training.state("b", "third"), UserError);
  EXPECT_EQ(training.state("b", "second").dims(), StaticDims{2});
  EXPECT_THROW((void)compile_training(regression(), {.params = {"x"}}), UserError);
  EXPECT_THROW((void)compile_training(regression(), {.params = {"nobody"}}), UserError);
}

// Running statistics of a batch norm follow outputs of the model, and are saved with it.
TEST(RuntimeTraining, ParamsCanFollowOutputs) {
  Graph g("normalised");
  const Value x = g.input("x", f32({8, 3}));
  const Value mean = g.param("mean", f32({3}));
  const Value var = g.param("var", f32({3}));
  const BatchNormResult r =
      batch_norm_training(x, g.param("gamma", f32({3})), g.param("beta", f32({3})), mean, var);
  g.set_outputs({ricci::mean(square(r.out - 1.0)), r.running_mean, r.running_var});
  const TrainingOptions options{.optimizer = Sgd{.learning_rate = 0.1},
                                .updates = {{"mean", 1}, {"var", 2}}};
  TrainingStep training = compile_training(g, options);
  for (const char* name : {"gamma", "var"}) {
    training.set_param(name, Tensor::splat(f32({3}), 1.0));
  }
  for (const char* name : {"beta", "mean"}) {
    training.set_param(name, Tensor::splat(f32({3}), 0.0));
  }
  const Tensor batch = random_tensor(3, f32({8, 3}));
  Numbers running_mean(3, 0);
  Numbers running_var(3, 1);
  double before = 0;
  for (int step = 0; step < 3; ++step) {
    const auto result = training.step({{"x", batch}});
    if (step > 0) {
      EXPECT_LT(result.loss.item(), before);
    }
    before = result.loss.item();
    const Numbers numbers = batch.numbers<double>();
    for (std::size_t c = 0; c < 3; ++c) {
      double total = 0;
      double squares = 0;
      for (std::size_t i = 0; i < 8; ++i) total += numbers[i * 3 + c] / 8;
      for (std::size_t i = 0; i < 8; ++i) squares += std::pow(numbers[i * 3 + c] - total, 2) / 7;
      running_mean[c] = 0.9 * running_mean[c] + 0.1 * total;
      running_var[c] = 0.9 * running_var[c] + 0.1 * squares;
    }
    EXPECT_TRUE(
        close(training.param("mean"), Tensor::from_numbers<double>(f32({3}), running_mean)));
    EXPECT_TRUE(close(training.param("var"), Tensor::from_numbers<double>(f32({3}), running_var)));
    EXPECT_TRUE(same(result.aux[0], training.param("mean")));
  }
  EXPECT_EQ(training.graph().trained.size(), 2U);
  for (const std::vector<UpdatedParam>& wrong : {std::vector<UpdatedParam>{{"mean", 0}},
                                                 {{"mean", 3}},
                                                 {{"x", 1}},
                                                 {{"mean", 1}, {"mean", 2}}}) {
    EXPECT_THROW((void)make_training_graph(GraphModule::from_graph(g), {.updates = wrong}),
                 UserError);
  }
  EXPECT_THROW((void)make_training_graph(GraphModule::from_graph(g),
                                         {.params = {"mean"}, .updates = {{"mean", 1}}}),
               UserError);
}

TEST(RuntimeTraining, SavedAndRestoredGivesTheSameBits) {
  const std::string path = ::testing::TempDir() + "ricci_training.npz";
  TrainingStep whole = started();
  for (std::uint64_t i = 0; i < 3; ++i) (void)whole.step(batch_of(i));
  whole.save(path);
  TrainingStep resumed = compile_training(regression());
  resumed.restore(path);
  EXPECT_EQ(resumed.steps(), 3);
  for (std::uint64_t i = 3; i < 6; ++i) {
    EXPECT_TRUE(same(resumed.step(batch_of(i)).loss, whole.step(batch_of(i)).loss));
  }
  EXPECT_TRUE(same(resumed.param("w"), whole.param("w")));
  EXPECT_TRUE(same(resumed.state("w", "second"), whole.state("w", "second")));

  whole.save_params(path);
  TrainingStep other = compile_training(regression(), {.optimizer = Sgd{}});
  other.load_params(path);
  EXPECT_TRUE(same(other.param("w"), whole.param("w")));
  EXPECT_THROW(other.restore(path), UserError);  // there is no count
  EXPECT_EQ(other.steps(), 0);
  std::filesystem::remove(path);
}

TEST(RuntimeTraining, ErrorsLeaveItUsable) {
  TrainingStep training = compile_training(regression());
  EXPECT_THROW((void)training.step(batch_of(1)), UserError);  // no values yet
  training.set_param("w", random_tensor(1, f32({3, 2})));
  training.set_param("b", random_tensor(2, f32({2})));
  Feeds bad = batch_of(1);
  bad.insert_or_assign("x", Tensor::zeros(f32({8, 4})));
  const Tensor w = training.param("w");
  EXPECT_THROW((void)training.step(bad), UserError);
  EXPECT_TRUE(same(training.param("w"), w));
  EXPECT_EQ(training.steps(), 0);
  (void)training.step(batch_of(1));
  EXPECT_EQ(training.steps(), 1);
}

TEST(RuntimeTraining, RefusesWhatMakesNoSense) {
  const auto refusal = [](const GraphModule& module, const TrainingOptions& options) {
    try {
      (void)make_training_graph(module, options);
      return std::string("nothing");
    } catch (const UserError& e) {
      return e.diagnostic().message;
    }
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const GraphModule good = regression();
  EXPECT_EQ(refusal(good, {.clip_norm = -1.0}), "clip_norm is -1, not a positive number");
  EXPECT_EQ(refusal(good, {.clip_norm = 0.0}), "clip_norm is 0, not a positive number");
  EXPECT_EQ(refusal(good, {.optimizer = AdamW{.learning_rate = -1}}),
            "learning_rate is -1, not a number from 0 on");
  EXPECT_EQ(refusal(good, {.optimizer = Sgd{.learning_rate = nan}}),
            "learning_rate is nan, not a number from 0 on");
  EXPECT_EQ(refusal(good, {.optimizer = Adam{.beta2 = 1}}), "beta2 is 1, not a number in [0, 1)");
  EXPECT_EQ(refusal(good, {.params = {"w", "b", "w"}}),
            "'w' is named twice among the trained params");
  EXPECT_EQ(refusal(good, {}), "nothing");

  Graph g("odd");
  const Value w = g.param("w", f32({4}));
  const Value k = g.param("k", i32({4}));
  g.set_outputs({w * cast(k, {.to = DType::F32})});
  const GraphModule odd = GraphModule::from_mir(g);
  EXPECT_EQ(refusal(odd, {}), "'k' is i32[4]: only params of a real floating dtype can be trained");
  EXPECT_EQ(refusal(odd, {.params = {"w"}}),
            "the loss, output 0 of 'odd', is f32[4] and not one number");
}

// A norm of all gradients reads them all: more arrays than a kernel would have by itself.
TEST(RuntimeTraining, HundredsOfParamsAreClippedTogether) {
  Graph g("deep");
  Value h = g.input("x", f32({2}));
  constexpr int Layers = 300;
  for (int i = 0; i < Layers; ++i) {
    h = h * g.param("p" + std::to_string(i), f32({2}));
  }
  g.set_outputs({reduce(h, {.op = ReduceKind::Sum, .axes = {0}})});
  TrainingStep training = compile_training(g, {.optimizer = Sgd{}, .clip_norm = 1.0});
  for (const std::string& name : training.params()) {
    training.set_param(name, Tensor::splat(f32({2}), 1.0));
  }
  const auto result = training.step({{"x", Tensor::splat(f32({2}), 1.0)}});
  EXPECT_EQ(result.loss.item(), 2);
  EXPECT_NEAR(*result.gradient_norm, std::sqrt(2.0 * Layers), 1e-4);
}

// [training-arena-overlap] Parameters are never where temporaries are.
TEST(RuntimeTraining, ParamsLieOutsideTheArena) {
  const TrainingStep training = started();
  const ricci::Program& p = training.compiled().program();
  for (const BufferId b : p.inputs) {
    EXPECT_EQ(p.buffers[static_cast<std::size_t>(b)].role, Buffer::Role::Input);
  }
  for (const BufferId b : p.outputs) {
    EXPECT_NE(p.buffers[static_cast<std::size_t>(b)].role, Buffer::Role::Temporary);
  }
}

// [training-share-activations] One product forward and one for the gradient of w: the forward pass
// is not computed again.
TEST(RuntimeTraining, ForwardIsComputedOnce) {
  std::size_t products = 0;
  const TrainingStep training = started();
  for (const Step& step : training.compiled().program().steps) {
    const auto* call = std::get_if<CallStep>(&step.what);
    products += call != nullptr && std::holds_alternative<loop::MatrixProduct>(call->call) ? 1 : 0;
  }
  EXPECT_LE(products, 2U);
}

TEST(RuntimeTraining, TakesAnyBatchWhenItIsSymbolic) {
  Graph g("regression");
  const Dim n = Dim::symbol("n");
  const Value x = g.input("x", {DType::F32, {n, 3}});
  const Value p = matmul(x, g.param("w", f32({3, 2})));
  g.set_outputs({reduce(square(p - 1.0), {.op = ReduceKind::Mean, .axes = {0, 1}})});
  TrainingStep training = compile_training(g, {.optimizer = Sgd{.learning_rate = 0.1}});
  training.set_param("w", random_tensor(1, f32({3, 2})));
  const double first = training.step({{"x", random_tensor(2, f32({5, 3}))}}).loss.item();
  for (std::uint64_t i = 0; i < 40; ++i) {
    (void)training.step({{"x", random_tensor(3 + i, f32({static_cast<int>(i % 4 + 2), 3}))}});
  }
  EXPECT_LT(training.step({{"x", random_tensor(2, f32({5, 3}))}}).loss.item(), first);
}

}  // namespace
}  // namespace ricci::testing
