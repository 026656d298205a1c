// The seam between the runtime and devices, tried on one whose memory is not the host's: faults
// that `finish` tells, params in the device's memory, buffers that are copied in and out, several
// devices at once.
#include <array>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/device/backend.h"
#include "ricci/ir/text.h"
#include "ricci/model/training.h"
#include "ricci/runtime/session.h"
#include "ricci/transform/grad.h"

#include "backend/lir/backend.h"
#include "runtime/models.h"
#include "runtime/staging.h"
#include "support/every_device.h"
#include "support/run_executable.h"

namespace ricci::testing {
namespace {

const Device& lir_device() {
  static const Device device = Device::named("lir");
  return device;
}

void expect_close(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(close(actual[i], expected[i])) << "output " << i;
  }
}

TEST(BackendLirDevice, IsListedBehindTheCpu) {
  const std::vector<std::string> all = Device::names();
  EXPECT_EQ(all.front(), has_device("cpu") ? "cpu" : "lir");
  EXPECT_EQ(all[has_device("cpu") ? 1 : 0], "lir");
  EXPECT_EQ(lir_device().name(), "lir");
  EXPECT_EQ(lir_device().threads(), 1);
  EXPECT_FALSE(lir_device().backend().memory().is_host());
}

TEST(BackendLirDevice, ExpandsWhatCanBeExpanded) {
  const Graph g = [] {
    Graph h("norm");
    const Value x = h.input("x", f32({4, 6}));
    h.set_outputs(
        {softmax(layer_norm(x, h.param("s", f32({6})), h.param("b", f32({6}))), {.axis = 1})});
    return h;
  }();
  const CompiledGraph f = compile(g, lir_device());
  for (std::size_t s = 0; s < f.program().steps.size(); ++s) EXPECT_EQ(f.served_by(s), "kernel");
  expect_close(f.run(random_feeds(g)), interpret(g, random_feeds(g)));
}

// A loop reads its operands where they lie; what its body computes has room in the device's memory.
TEST(BackendLirDevice, LoopsTakeTheRoomTheySay) {
  constexpr std::int64_t Rows = 1000;
  const auto executable = [&](std::int64_t width) {
    const Graph g = parse_graph(fmt::format(R"(
graph @loop {{
  %c = input "c" : f32[4]
  %w = input "w" : f32[{0}, 4]
  %xs = input "xs" : f32[{1}, 4]
  %out = scan %c, %w, %xs {{length = {1}, num_carry = 1, num_bcast = 1, num_xs = 1}} body {{
    %c = input "c" : f32[4]
    %w = input "w" : f32[{0}, 4]
    %x = input "x" : f32[4]
    %r = narrow %w {{axis = 0, start = 0, len = 1}}
    %v = reshape %r {{new_shape = [4]}}
    %m = mul %c, %v
    %n = add %m, %x
    return %n
  }}
  return %out
}}
)",
                                            width, Rows));
    const auto& backend = lir_device().backend();
    auto compiled = backend.compile(
        std::make_shared<const Program>(make_program(g, {.target = &backend.target()})));
    EXPECT_EQ(compiled->served_by(0), "loop") << to_string(compiled->program());
    expect_close(run_executable(*compiled, g, random_feeds(g), backend.memory()),
                 interpret(g, random_feeds(g)));
    return compiled;
  };
  const auto narrow = executable(3);
  EXPECT_GE(narrow->workspace_bytes(), 3 * 4 * 4);  // the carry, a product and a sum
  EXPECT_LT(narrow->workspace_bytes(), Rows);
  EXPECT_EQ(executable(3000)->workspace_bytes(), narrow->workspace_bytes());
}

TEST(BackendLirDevice, HasNoCodeToShow) {
  const CompiledGraph f = compile(dense_graph(), lir_device());
  for (const char* form : {"llvm", "asm"}) {
    try {
      (void)lir_device().backend().code_text(f.program(), form, "host");
      FAIL() << form;
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ErrorCode::UnsupportedOnBackend);
      EXPECT_NE(std::string(e.what()).find("'lir'"), std::string::npos) << e.what();
    }
  }
}

// Faults.

Graph picking(bool in_loop = false) {
  Graph g("picking");
  const Value table = g.input("table", f32({16, 30}));
  const Value ids = g.input("ids", i32({40}));
  if (!in_loop) {
    g.set_outputs({gather(table, ids) * 2.0});
    return g;
  }
  const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    return {v[0] + gather(v[1], v[2])};
  };
  g.set_outputs(scan(std::array{g.input("c", f32({30}))}, {.bcasts = {table}, .xs = {ids}}, body));
  return g;
}

Feeds with_id(const Graph& g, std::size_t place, std::int64_t id) {
  Feeds feeds = random_feeds(g);
  std::vector<std::int64_t> ids(40, 3);
  ids[place] = id;
  feeds["ids"] = Tensor::from_numbers<std::int64_t>(i32({40}), ids);
  return feeds;
}

Diagnostic fault_of(const Graph& g, const Feeds& feeds, const Device& device) {
  try {
    (void)compile(g, device).run(feeds);
  } catch (const UserError& e) {
    return e.diagnostic();
  }
  return {.message = "no fault"};
}

TEST(BackendLirFaults, AreToldInTheWordsOfTheCpu) {
  for (const bool in_loop : {false, true}) {
    const Graph g = picking(in_loop);
    for (const std::int64_t id : {16, -1, 99}) {
      const Feeds feeds = with_id(g, 7, id);
      const Diagnostic cpu = fault_of(g, feeds, Device::standard());
      const Diagnostic lir = fault_of(g, feeds, lir_device());
      EXPECT_EQ(lir.code, ErrorCode::IndexOutOfRange);
      EXPECT_EQ(lir.code, cpu.code);
      EXPECT_EQ(lir.detail, cpu.detail);
      EXPECT_EQ(lir.message, cpu.message);
      EXPECT_EQ(lir.where.to_string(), cpu.where.to_string());
      EXPECT_TRUE(lir.where.known());
      EXPECT_EQ(lir.notes, cpu.notes);
      EXPECT_EQ(lir.help, cpu.help);
    }
  }
}

TEST(BackendLirFaults, OfCallsNameTheirOpAndPlace) {
  Graph g("solving");
  g.set_outputs({dense_solve(g.input("a", f64({3, 3})), g.input("b", f64({3, 1})))});
  const Feeds feeds = {{"a", Tensor::zeros(f64({3, 3}))}, {"b", Tensor::zeros(f64({3, 1}))}};
  const Diagnostic cpu = fault_of(g, feeds, Device::standard());
  const Diagnostic lir = fault_of(g, feeds, lir_device());
  EXPECT_EQ(lir.code, ErrorCode::SingularMatrix);
  EXPECT_EQ(lir.full_code(), cpu.full_code());
  EXPECT_EQ(lir.message, cpu.message);
  EXPECT_EQ(lir.where.to_string(), cpu.where.to_string());
}

// Inputs and outputs of a program in the device's memory.
struct OnDevice {
  OnDevice(const device::Backend& backend, const Program& program, const Graph& graph,
           const Feeds& feeds) {
    for (const Tensor& t : check_feeds(graph, feeds).values) {
      arrays.emplace_back(backend.memory(), static_cast<std::int64_t>(t.bytes().size()));
      arrays.back().copy_in(t.data());
      inputs.push_back(arrays.back().data());
    }
    for (const BufferId b : program.outputs) {
      arrays.emplace_back(backend.memory(), program.buffers[static_cast<std::size_t>(b)].bytes());
      outputs.push_back(arrays.back().data());
    }
  }
  std::vector<device::Array> arrays;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
};

TEST(BackendLirFaults, StartRecordsThemAndFinishTellsThem) {
  const Graph g = picking();
  const lir::Backend backend;
  const auto executable = backend.compile(
      std::make_shared<const Program>(make_program(g, {.target = &backend.target()})));
  const auto context = executable->make_context();
  const OnDevice bad(backend, executable->program(), g, with_id(g, 0, 16));
  EXPECT_NO_THROW(executable->start(*context, {bad.inputs, bad.outputs, 0, nullptr}));
  EXPECT_THROW(executable->finish(*context), UserError);
  // The context is as good as new.
  const OnDevice good(backend, executable->program(), g, with_id(g, 0, 15));
  EXPECT_NO_THROW(device::run(*executable, *context, {good.inputs, good.outputs, 0, nullptr}));
}

TEST(BackendLirFaults, EndLoopsThatWouldGoOn) {
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
  EXPECT_EQ(fault_of(g, feeds, lir_device()).code, ErrorCode::IndexOutOfRange);
}

// The seam.

TEST(BackendLirDevice, RefusesPointersOfTheHost) {
  const Graph g = dense_graph();
  const lir::Backend backend;
  const auto executable = backend.compile(
      std::make_shared<const Program>(make_program(g, {.target = &backend.target()})));
  const auto context = executable->make_context();
  const OnDevice arrays(backend, executable->program(), g, random_feeds(g));
  std::vector<const std::byte*> inputs = arrays.inputs;
  const Tensor host = Tensor::zeros(f32({4, 6}));
  inputs[0] = host.data();
  EXPECT_THROW(executable->start(*context, {inputs, arrays.outputs, 0, nullptr}), InternalError);
  const lir::Backend other;  // nor of another device
  const OnDevice theirs(other, executable->program(), g, random_feeds(g));
  EXPECT_THROW(executable->start(*context, {theirs.inputs, arrays.outputs, 0, nullptr}),
               InternalError);
}

TEST(BackendLirDevice, ProgramsMadeForTheCpuAreRun) {
  if (!has_device("cpu")) GTEST_SKIP() << "there is no CPU back end";
  const schedule::Target& target = Device::default_cpu().backend().target();
  const lir::Backend backend;
  std::size_t attached = 0;
  std::size_t chunks = 0;
  for (const Graph& g : {dense_graph(), wide_graph()}) {
    const auto program = std::make_shared<const Program>(make_program(g, {.target = &target}));
    for (const Step& s : program->steps) {
      const auto* call = std::get_if<CallStep>(&s.what);
      if (call != nullptr && call->after) ++attached;
    }
    for (const loop::Kernel& k : program->kernels) chunks += k.chunks > 1 ? 1 : 0;
    const Feeds feeds = random_feeds(g);
    expect_close(run_executable(*backend.compile(program), g, feeds, backend.memory()),
                 interpret(g, feeds));
  }
  EXPECT_GE(attached, 1U);  // what calls and kernels have that are not made for lir
  EXPECT_GE(chunks, 1U);
}

TEST(BackendLirDevice, HostBuffersAreCopiedInAndOutAtEachRun) {
  const Graph g = dense_graph();
  const CompiledGraph f = compile(g, lir_device());
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

TEST(BackendLirDevice, ParamsAreCopiedAndUpdatedWhereTheyLie) {
  CompiledGraph f = compile(counting_graph(), lir_device(), {.donations = {{0, "c"}, {2, "s"}}});
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

TEST(BackendLirDevice, TrainsAsTheCpuDoes) {
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
      Session session(k == 0 ? Device::standard() : lir_device());
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

TEST(BackendLirDevice, GradientsOfLoopsThatKeepFewSteps) {
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
  expect_close(compile(gradient, lir_device()).run(feeds), interpret(gradient, feeds));
}

TEST(BackendLirDevice, SeveralDevicesAndThreadsAtOnce) {
  const Graph g = dense_graph();
  const Feeds feeds = random_feeds(g);
  const std::vector<Tensor> expected = interpret(g, feeds);
  const std::array devices = {Device::standard(), Device::named("lir"), Device::named("lir")};
  std::vector<CompiledGraph> compiled;
  for (const Device& d : devices) compiled.push_back(compile(g, d));
  for (CompiledGraph& f : compiled) f.set_param("w", feeds.at("w"));
  std::array<std::vector<Tensor>, 6> results;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        results[t] = compiled[t % 3].run({{"x", feeds.at("x")}, {"b", feeds.at("b")}});
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& r : results) expect_close(r, expected);
}

TEST(BackendLirDevice, AContextOutlivesItsCompiledGraph) {
  std::optional<ExecutionContext> context;
  {
    const CompiledGraph f = compile(dense_graph(), Device::named("lir"));
    context.emplace(f.make_context());
  }
  context.reset();
}

TEST(BackendLirDevice, MemoryLimitsAreKept) {
  const Graph g = wide_graph();
  const CompiledGraph f = compile(g, lir_device(), {.memory_limit = 100});
  EXPECT_THROW((void)f.run(random_feeds(g)), UserError);
}

}  // namespace
}  // namespace ricci::testing
