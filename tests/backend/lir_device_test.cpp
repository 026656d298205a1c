// The interpreter of programs as a device whose memory is not the host's: what `start` notes and
// `finish` tells, pointers of others, programs made for other devices, several devices at once.
// What holds on every device is in devices_test.cpp.
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
#include "support/device_programs.h"
#include "support/every_device.h"
#include "support/run_executable.h"

namespace ricci::testing::lir_device_test {
namespace {

const Device& lir_device() {
  static const Device device = Device::named("lir");
  return device;
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

TEST(BackendLirFaults, StartRecordsThemAndFinishTellsThem) {
  const Graph g = picking_rows();
  const lir::Backend backend;
  const auto executable = backend.compile(
      std::make_shared<const Program>(make_program(g, {.target = &backend.target()})));
  const auto context = executable->make_context();
  const OnDevice bad(backend, executable->program(), g, picking_feeds(g, 0, 16));
  EXPECT_NO_THROW(executable->start(*context, {bad.inputs, bad.outputs, 0, nullptr}));
  EXPECT_THROW(executable->finish(*context), UserError);
  // The context is as good as new.
  const OnDevice good(backend, executable->program(), g, picking_feeds(g, 0, 15));
  EXPECT_NO_THROW(device::run(*executable, *context, {good.inputs, good.outputs, 0, nullptr}));
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

TEST(BackendLirDevice, MemoryLimitsAreKept) {
  const Graph g = wide_graph();
  const CompiledGraph f = compile(g, lir_device(), {.memory_limit = 100});
  EXPECT_THROW((void)f.run(random_feeds(g)), UserError);
}

}  // namespace
}  // namespace ricci::testing::lir_device_test
