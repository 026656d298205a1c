// Steps of every optimiser on every device, against the interpreter.
#include <gtest/gtest.h>

#include "ricci/interp/interpreter.h"
#include "ricci/model/training.h"

#include "runtime/models.h"
#include "support/every_device.h"

namespace ricci::testing {
namespace {

// mean (tanh(x·w) + b - y)², with a square matrix: eigenvectors are then unique.
GraphModule square_layer() {
  Graph g("square_layer");
  const Value x = g.input("x", f64({8, 3}));
  const Value p = tanh(matmul(x, g.param("w", f64({3, 3})))) + g.param("b", f64({3}));
  g.set_outputs({mean(square(p - g.input("y", f64({8, 3}))))});
  return GraphModule::from_mir(g);
}

class RuntimeOptimizers : public OnEveryDevice {};

TEST_P(RuntimeOptimizers, AgreeWithTheInterpreter) {
  Session session(device());
  for (const std::string_view name : optimizer_names()) {
    SCOPED_TRACE(name);
    const TrainingOptions options{.optimizer = optimizer_named(name), .clip_norm = 1.0, .ema = 0.9};
    TrainingStep training = compile_training(session, square_layer(), options);
    const TrainingGraph& made = training.graph();
    Feeds feeds = {{"x", random_tensor(1, f64({8, 3}))},
                   {"y", random_tensor(2, f64({8, 3}))},
                   {"w", random_tensor(3, f64({3, 3}))},
                   {"b", random_tensor(4, f64({3}))}};
    const Feeds batch = {{"x", feeds.at("x")}, {"y", feeds.at("y")}};
    for (const char* param : {"w", "b"}) training.set_param(param, feeds.at(param));
    for (const Donation& d : made.donations) {
      const Type& type = made.graph.type(made.graph.outputs()[d.output]);
      feeds.try_emplace(d.input, Tensor::zeros(type));
    }
    for (int i = 0; i < 3; ++i) {
      (void)training.step(batch);
      const std::vector<Tensor> out = interpret(made.graph, feeds);
      for (const Donation& d : made.donations) feeds.insert_or_assign(d.input, out[d.output]);
    }
    for (const char* param : {"w", "b"}) {
      EXPECT_TRUE(close(training.param(param), feeds.at(param), {1e-7, 1e-8})) << param;
    }
  }
}

RICCI_ON_EVERY_DEVICE(RuntimeOptimizers);

}  // namespace
}  // namespace ricci::testing
