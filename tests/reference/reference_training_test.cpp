// Optimisers against optax, and those that are not in it against PyTorch's or their formulas in
// NumPy; schedules against optax and transformers; minima against SciPy. See
// make_training_values.py.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "ricci/io/npy.h"
#include "ricci/model/lbfgs.h"
#include "ricci/model/training.h"

#include "support/compare.h"
#include "test_paths.h"

namespace ricci::testing::reference_training_test {
namespace {

const std::map<std::string, Tensor>& training_arrays(const std::string& file) {
  static std::map<std::string, std::map<std::string, Tensor>> files;
  std::map<std::string, Tensor>& arrays = files[file];
  if (arrays.empty()) {
    const std::string folder = RICCI_SOURCE_DIR "/tests/reference/training/";
    for (auto& [name, tensor] : io::read_npz(folder + file)) arrays.emplace(name, tensor);
  }
  return arrays;
}

const Tensor& array(const std::string& name) { return training_arrays("optimizers.npz").at(name); }

const std::vector<std::string> Params = {"a", "w", "b"};

// mean (tanh(x·a)·w + b - y)²
Graph network() {
  Graph g("network");
  const Value x = g.input("x", f64({8, 3}));
  const Value h = tanh(matmul(x, g.param("a", f64({3, 4}))));
  const Value p = matmul(h, g.param("w", f64({4, 4}))) + g.param("b", f64({4}));
  g.set_outputs({mean(square(p - g.input("y", f64({8, 4}))))});
  return g;
}

// Σ c/2·p² + p⁴/10: the Hessian is diagonal, so that random signs find it exactly.
Graph separable() {
  Graph g("separable");
  Value total;
  for (const std::string& name : Params) {
    const Tensor& curve = array("curve." + name);
    const Value p = g.param(name, curve.type());
    const Value c = g.constant(curve);
    const Value part = sum(c * square(p) * 0.5 + square(square(p)) * 0.1);
    total = total.valid() ? total + part : part;
  }
  g.set_outputs({total});
  return g;
}

struct OptimizerCase {
  std::string name;
  Optimizer optimizer;
  double tolerance = 1e-9;
};

void PrintTo(const OptimizerCase& c, std::ostream* out) { *out << c.name; }

class ReferenceOptimizers : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(ReferenceOptimizers, AreWhereTheirReferencesAre) {
  const OptimizerCase& c = GetParam();
  const bool curved = curvature_interval(c.optimizer).has_value();
  TrainingStep training =
      compile_training(curved ? separable() : network(), {.optimizer = c.optimizer});
  Feeds feeds;
  if (!curved) feeds = {{"x", array("start.x")}, {"y", array("start.y")}};
  for (const std::string& name : Params) training.set_param(name, array("start." + name));
  for (int t = 1; t <= 100; ++t) {
    (void)training.step(feeds);
    if (t != 10 && t != 100) continue;
    for (const std::string& name : Params) {
      const std::string key = "." + std::to_string(t) + "." + name;
      EXPECT_TRUE(close(training.param(name), array(c.name + key), {c.tolerance, c.tolerance}))
          << key;
      const auto averaged = training_arrays("optimizers.npz").find(c.name + "_averaged" + key);
      if (averaged == training_arrays("optimizers.npz").end()) continue;
      EXPECT_TRUE(close(training.averaged(name), averaged->second, {c.tolerance, c.tolerance}))
          << key;
    }
  }
  EXPECT_EQ(training.steps(), 100);
}

std::vector<OptimizerCase> optimizer_cases() {
  return {
      {"sgd", Sgd{.learning_rate = 0.1}},
      {"sgd_momentum", Sgd{.learning_rate = 0.05, .momentum = 0.9}},
      {"sgd_nesterov",
       Sgd{.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.02, .nesterov = true}},
      {"adam", Adam{.learning_rate = 2e-2, .beta2 = 0.99, .weight_decay = 0.02}},
      {"adamw", AdamW{.learning_rate = 2e-2, .weight_decay = 0.1}},
      // optax has this schedule in f32.
      {"adamw_cosine",
       AdamW{.learning_rate = cosine(5e-2, {.warm_up = 10, .steps = 80}), .weight_decay = 0.1},
       1e-6},
      {"nadam", NAdam{.learning_rate = 2e-2, .weight_decay = 0.05}},
      {"radam", RAdam{.learning_rate = 2e-2}},
      {"lamb", Lamb{.learning_rate = 2e-2, .weight_decay = 0.1}},
      {"lion", Lion{.learning_rate = 3e-3, .weight_decay = 0.1}},
      {"rmsprop", RmsProp{.learning_rate = 1e-2}},
      {"rmsprop_centered", RmsProp{.learning_rate = 1e-2,
                                   .decay_rate = 0.95,
                                   .epsilon = 1e-2,
                                   .momentum = 0.5,
                                   .nesterov = true,
                                   .centered = true}},
      {"adagrad", Adagrad{.learning_rate = 0.1}},
      // optax takes the power of the step in f32.
      {"adafactor", Adafactor{.learning_rate = 5e-2, .factored_from = 3}, 1e-5},
      {"adafactor_momentum",
       Adafactor{
           .learning_rate = 5e-2, .momentum = 0.9, .weight_decay = 1e-3, .scale_by_param = false},
       1e-5},
      {"muon", Muon{.learning_rate = 2e-2, .weight_decay = 0.05}, 1e-7},
      {"muon_plain", Muon{.learning_rate = 2e-2, .nesterov = false}, 1e-7},
      // Its reference has the QR factors in f32.
      {"soap", Soap{.learning_rate = 3e-2}, 1e-4},
      {"psgd_kron", PsgdKron{.learning_rate = 2e-2, .weight_decay = 0.01, .interval = 2}, 1e-7},
      {"schedule_free",
       ScheduleFreeAdamW{.learning_rate = 2e-2, .beta2 = 0.99, .weight_decay = 0.02}},
      {"sophia", Sophia{.learning_rate = 1e-2, .weight_decay = 0.01, .gamma = 0.5, .interval = 3}}};
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceOptimizers, ::testing::ValuesIn(optimizer_cases()),
                         [](const auto& i) { return i.param.name; });

TEST(ReferenceOptimizersList, HasThemAll) {
  for (const std::string_view wanted : optimizer_names()) {
    const auto is_wanted = [&](const OptimizerCase& c) { return name(c.optimizer) == wanted; };
    EXPECT_TRUE(std::ranges::any_of(optimizer_cases(), is_wanted)) << wanted;
  }
}

TEST(ReferenceSchedules, GiveWhatOthersGive) {
  const std::map<std::string, Schedule> schedules = {
      {"constant", constant(0.3)},
      {"linear", linear(0.1, 0.02, {.steps = 40, .begin = 10})},
      {"polynomial", polynomial(0.1, 0.01, {.steps = 50, .power = 2.5, .begin = 5})},
      {"cosine", cosine(0.2, {.steps = 60, .end = 0.02})},
      {"warm_cosine", cosine(0.2, {.warm_up = 15, .steps = 70, .start = 0.01, .end = 0.002})},
      {"exponential", exponential(0.5, {.rate = 0.7, .steps = 20, .begin = 7})},
      {"staircase", exponential(0.5, {.rate = 0.7, .steps = 20, .staircase = true, .end = 0.2})},
      {"one_cycle", one_cycle(0.4, {.steps = 90})},
      {"piecewise", piecewise(0.4, {{20, 0.2}, {55, 0.02}})},
      {"warm_up", warm_up(0.3, 25, 0.05)},
      {"inverse_sqrt", inverse_sqrt(0.3, 20)},
      {"joined",
       joined({linear(0, 0.1, {.steps = 12}), exponential(0.1, {.rate = 0.5, .steps = 10})},
              {12})}};
  const auto& expected = training_arrays("schedules.npz");
  ASSERT_EQ(expected.size(), schedules.size());
  for (const auto& [name, values] : expected) {
    const std::vector<double> numbers = values.numbers<double>();
    for (std::size_t t = 0; t < numbers.size(); ++t) {
      // optax has some of its steps in f32.
      EXPECT_NEAR(schedules.at(name).at(static_cast<std::int64_t>(t)), numbers[t], 1e-7)
          << name << " at step " << t;
    }
  }
}

TEST(ReferenceLbfgs, FindsTheMinimumSciPyFinds) {
  Graph g("logistic");
  const Value w = g.param("w", f64({5}));
  const Value z = reshape_to(matmul(g.input("x", f64({30, 5})), reshape_to(w, {5, 1})), {30});
  const Value labels = g.input("labels", f64({30}));
  g.set_outputs({mean(softplus(z) - labels * z) + 0.05 * sum(square(w))});
  for (const LineSearch search : {LineSearch::StrongWolfe, LineSearch::Backtracking}) {
    const LbfgsResult found = minimize(g, {{"w", Tensor::zeros(f64({5}))}},
                                       {{"x", array("lbfgs.x")}, {"labels", array("lbfgs.labels")}},
                                       {.gradient_tolerance = 1e-8, .line_search = search});
    EXPECT_EQ(found.stopped, LbfgsStop::SmallGradient);
    EXPECT_TRUE(close(found.params.at("w"), array("lbfgs.w"), {1e-6, 1e-6}));
    EXPECT_NEAR(found.loss, array("lbfgs.loss").item(), 1e-10);
    EXPECT_LT(found.iterations, 30);
  }
}

}  // namespace
}  // namespace ricci::testing::reference_training_test
