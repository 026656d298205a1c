// The seam between the runtime and devices, on every device this build has: faults and their words,
// params in the device's memory, buffers of the host, training, loops.
#include <array>
#include <optional>

#include <gtest/gtest.h>

#include "ricci/model/training.h"
#include "ricci/runtime/session.h"
#include "ricci/transform/grad.h"

#include "runtime/models.h"
#include "support/device_programs.h"
#include "support/every_device.h"

namespace ricci::testing::devices_test {
namespace {

class BackendDevices : public OnEveryDevice {};
RICCI_ON_EVERY_DEVICE(BackendDevices);

void expect_same_words(const Diagnostic& mine, const Diagnostic& other) {
  EXPECT_EQ(mine.code, other.code);
  EXPECT_EQ(mine.detail, other.detail);
  EXPECT_EQ(mine.message, other.message);
  EXPECT_EQ(mine.where.to_string(), other.where.to_string());
  EXPECT_TRUE(mine.where.known());
  EXPECT_EQ(mine.notes, other.notes);
  EXPECT_EQ(mine.help, other.help);
}

TEST_P(BackendDevices, FaultsAreToldInTheSameWords) {
  for (const bool in_loop : {false, true}) {
    const Graph g = picking_rows(in_loop);
    for (const std::int64_t id : {16, -1, 99}) {
      const Feeds feeds = picking_feeds(g, 7, id);
      const Diagnostic mine = fault_on(device(), g, feeds);
      EXPECT_EQ(mine.code, ErrorCode::IndexOutOfRange);
      expect_same_words(mine, fault_on(Device::standard(), g, feeds));
    }
  }
}

TEST_P(BackendDevices, FaultsOfCallsNameTheirOpAndPlace) {
  Graph g("solving");
  g.set_outputs({dense_solve(g.input("a", f64({3, 3})), g.input("b", f64({3, 1})))});
  const Feeds feeds = {{"a", Tensor::zeros(f64({3, 3}))}, {"b", Tensor::zeros(f64({3, 1}))}};
  const Diagnostic mine = fault_on(device(), g, feeds);
  EXPECT_EQ(mine.code, ErrorCode::SingularMatrix);
  expect_same_words(mine, fault_on(Device::standard(), g, feeds));
}

TEST_P(BackendDevices, FaultsLeaveTheProgramUsable) {
  const Graph g = picking_rows();
  const CompiledGraph f = compile(g, device());
  for (int again = 0; again < 4; ++again) {
    EXPECT_THROW((void)f.run(picking_feeds(g, 3, 16)), UserError);
    const Feeds good = picking_feeds(g, 3, 15);
    expect_close(f.run(good), interpret(g, good));
  }
}

TEST_P(BackendDevices, FaultsEndLoopsThatWouldGoOn) {
  Graph g("forever");
  const Value ids = g.input("ids", i32({1}));
  const auto goes_on = [](Graph& body, std::span<const Value>) -> std::vector<Value> {
    return {body.constant(Tensor::of<bool>({}, {true}))};
  };
  const Value table = g.input("table", i32({4}));
  const auto step = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    return {gather(v[1], v[0]), v[1]};
  };
  g.set_outputs({while_loop(std::array{ids, table}, goes_on, step).carries[0]});
  const Feeds feeds = {{"ids", Tensor::of<std::int32_t>({1}, {0})},
                       {"table", Tensor::of<std::int32_t>({4}, {1, 2, 3, 4})}};
  EXPECT_EQ(fault_on(device(), g, feeds).code, ErrorCode::IndexOutOfRange);
}

TEST_P(BackendDevices, BuffersOfTheHostAreReadAndWrittenAtEachRun) {
  const Graph g = dense_graph();
  const CompiledGraph f = compile(g, device());
  ExecutionContext context = f.make_context();
  Tensor y = Tensor::zeros(f32({4, 5}));
  Tensor total = Tensor::zeros(f32({}));
  const std::array<void*, 2> out = {y.mutable_data(), total.mutable_data()};
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Feeds feeds = random_feeds(g, 10 * seed);
    const std::array<const void*, 3> in = {feeds.at("x").data(), feeds.at("w").data(),
                                           feeds.at("b").data()};
    f.run(context, in, out);
    const std::vector<Tensor> expected = interpret(g, feeds);
    EXPECT_TRUE(close(Tensor::from_bytes(y.type(), y.bytes()), expected[0]));
    EXPECT_TRUE(close(Tensor::from_bytes(total.type(), total.bytes()), expected[1]));
  }
}

TEST_P(BackendDevices, ParamsAreUpdatedWhereTheyLie) {
  CompiledGraph f = compile(counting_graph(), device(), {.donations = {{0, "c"}, {2, "s"}}});
  std::array<float, 3> s = {1, 2, 3};
  f.set_param("c", Tensor::of<float>({}, {1}));
  f.set_param("s", Tensor::borrow(f32({3}), s.data(), {1}, nullptr));
  s = {100, 100, 100};  // the device has its own
  (void)f.update({{"x", Tensor::of<float>({3}, {1, 1, 1})}});
  (void)f.update({{"x", Tensor::of<float>({3}, {1, 1, 1})}});
  EXPECT_EQ(f.param("s").elements<float>(), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(f.param("c").item(), 3);
  EXPECT_EQ(s, (std::array<float, 3>{100, 100, 100}));
  f.set_param("s", Tensor::of<float>({3}, {0, 0, 0}));
  (void)f.update({{"x", Tensor::of<float>({3}, {1, 2, 3})}});
  EXPECT_EQ(f.param("s").elements<float>(), (std::vector<float>{3, 6, 9}));
}

TEST_P(BackendDevices, TrainsAsTheStandardDeviceDoes) {
  Graph g("regression");
  const Value x = g.input("x", f64({8, 3}));
  const Value h = tanh(matmul(x, g.param("w", f64({3, 4}))) + g.param("b", f64({4})));
  const Value p = matmul(h, g.param("v", f64({4, 2})));
  const Value error = square(p - g.input("y", f64({8, 2})));
  g.set_outputs({reduce(error, {.op = ReduceKind::Mean, .axes = {0, 1}})});
  const std::vector<Optimizer> optimizers = {Sgd{.learning_rate = 0.1, .momentum = 0.9},
                                             Adam{.learning_rate = 0.05}, AdamW{}};
  for (const Optimizer& optimizer : optimizers) {
    std::array<Tensor, 2> weights;
    std::array<double, 2> losses{};
    for (const std::size_t k : {0, 1}) {
      Session session(k == 0 ? Device::standard() : device());
      TrainingStep training = compile_training(session, GraphModule::from_graph(g),
                                               {.optimizer = optimizer, .clip_norm = 0.5});
      training.set_param("w", random_tensor(1, f64({3, 4})));
      training.set_param("b", random_tensor(2, f64({4})));
      training.set_param("v", random_tensor(3, f64({4, 2})));
      for (std::uint64_t i = 0; i < 20; ++i) {
        losses[k] = training
                        .step({{"x", random_tensor(10 + i, f64({8, 3}))},
                               {"y", random_tensor(90 + i, f64({8, 2}))}})
                        .loss.item();
      }
      weights[k] = training.param("w");
    }
    EXPECT_NEAR(losses[0], losses[1], 1e-9);
    EXPECT_TRUE(close(weights[1], weights[0], {1e-9, 1e-9}));
  }
}

TEST_P(BackendDevices, GradientsOfLoopsThatKeepFewSteps) {
  Graph g("long");
  const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    const Value next = tanh(v[0] * 0.9 + v[1]);
    return {next, next * v[0]};
  };
  const std::vector<Value> r = scan(std::array{g.input("c", f32({3}))},
                                    {.xs = {g.input("xs", f32({23, 3}))}, .checkpoints = 5}, body);
  g.set_outputs({reduce(r[0], {.op = ReduceKind::Sum, .axes = {0}}) +
                 reduce(r[1], {.op = ReduceKind::Sum, .axes = {0, 1}})});
  const Graph gradient = value_and_grad(g, {"c", "xs"}).graph;
  const Feeds feeds = random_feeds(gradient);
  expect_close(compile(gradient, device()).run(feeds), interpret(gradient, feeds));
}

TEST_P(BackendDevices, AContextOutlivesItsCompiledGraph) {
  std::optional<ExecutionContext> context;
  {
    const CompiledGraph f = compile(dense_graph(), device());
    context.emplace(f.make_context());
  }
  context.reset();
}

}  // namespace
}  // namespace ricci::testing::devices_test
