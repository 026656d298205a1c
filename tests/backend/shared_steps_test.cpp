// Kernels that share a step: when they do, that nobody notices, and what is said when one fails.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "ricci/ir/text.h"
#include "ricci/model/pipeline.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/device.h"

#include "runtime/models.h"
#include "schedule/program_bytes.h"
#include "schedule/side_by_side.h"

namespace ricci::testing::shared_steps_test {
namespace {

// Kernels of many sizes that have nothing to do with each other, and one that waits for some.
Graph many_updates() {
  Graph g("updates");
  std::vector<Value> outputs;
  Value total = filled(g, f32({}), 0.0);
  std::int64_t n = 7;
  for (int i = 0; i < 12; ++i, n = 2 * n + 1) {
    const Value p = g.param("p" + std::to_string(i), f32({n}));
    const Value d = g.input("d" + std::to_string(i), f32({n}));
    outputs.push_back(p - tanh(d) * 0.1);
    if (i < 2) total = total + reduce(square(d), {.op = ReduceKind::Sum, .axes = {0}});
  }
  outputs.push_back(total);
  g.set_outputs(outputs);
  return g;
}

std::vector<Donation> all_params() {
  std::vector<Donation> out;
  for (std::size_t i = 0; i < 12; ++i) out.push_back({i, "p" + std::to_string(i)});
  return out;
}

const KernelStep* kernels_of(const Step& step) { return std::get_if<KernelStep>(&step.what); }

std::size_t launches(const Program& program) {
  std::size_t n = 0;
  for (const Step& step : program.steps) n += kernels_of(step)->launches.size();
  return n;
}

TEST(BackendSharedSteps, IndependentKernelsAreOneStep) {
  const Program program = make_program(many_updates());
  EXPECT_GT(launches(program), 12U);
  EXPECT_LE(program.steps.size(), 4U) << to_string(program);
  const Program apart = make_program(many_updates(), {.fuse = false});
  EXPECT_EQ(apart.steps.size(), launches(apart));
  const FusionReport report = CompilePipeline().compile_graph(many_updates()).fusion;
  EXPECT_GE(report.side_by_side, 12U);
  EXPECT_EQ(report.kernels, launches(program));
}

TEST(BackendSharedSteps, BitsDoNotDependOnThreadsNorOnCompany) {
  const Graph g = many_updates();
  const Feeds feeds = random_feeds(g);
  const std::vector<Tensor> expected = compile(g, Device::cpu(1), {.fuse = false}).run(feeds);
  Feeds gradients;
  for (const auto& [name, value] : feeds) {
    if (name.starts_with('d')) gradients.emplace(name, value);
  }
  for (const int threads : {1, 2, 3, 8}) {
    CompiledGraph f = compile(g, Device::cpu(threads), {.donations = all_params()});
    for (int i = 0; i < 12; ++i) {
      const std::string name = "p" + std::to_string(i);
      f.set_param(name, feeds.at(name));
    }
    (void)f.update(gradients);
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_TRUE(f.param("p" + std::to_string(i)).identical(expected[i]))
          << i << ", " << threads << " threads";
    }
  }
}

// Steps put together by hand that read what the other writes.
TEST(BackendSharedSteps, DependentLaunchesAreRefused) {
  Program program = make_program(parse_graph(R"(graph @g {
    %x = input "x" : f32[64]
    %0 = tanh %x
    %1 = exp %0
    return %1
  })"),
                                 {.fuse = false});
  ASSERT_EQ(program.steps.size(), 2U);
  EXPECT_NO_THROW((void)schedule::program_from_bytes(schedule::to_bytes(program)));
  program.steps = {schedule::kernel_step(
      {kernels_of(program.steps[0])->launches[0], kernels_of(program.steps[1])->launches[0]})};
  const std::vector<std::byte> bytes = schedule::to_bytes(program);
  EXPECT_THROW((void)schedule::program_from_bytes(bytes), UserError);
}

TEST(BackendSharedSteps, FaultsAndInfinitiesNameTheKernel) {
  Graph g("parts");
  const Value table = g.input("table", f32({10}));
  const Value at = g.input("at", i32({3}));
  const Value x = g.input("x", f32({5}));
  const int line = __LINE__ + 1;
  const Value found = gather(table, at, {.axis = 0});
  const Value l = log(x);
  g.set_outputs({found, l, exp(g.input("y", f32({4})))});
  const CompiledGraph f = compile(g);
  ASSERT_EQ(f.program().steps.size(), 1U) << to_string(f.program());
  Feeds feeds = {{"table", Tensor::zeros(f32({10}))},
                 {"at", Tensor::of<std::int32_t>({3}, {0, 1, 2})},
                 {"x", Tensor::of<float>({5}, {1, 2, 0, 4, 5})},
                 {"y", Tensor::of<float>({4}, {1, std::numeric_limits<float>::infinity(), 0, 1})}};
  try {
    (void)f.run(feeds, {.check_finite = true});
    FAIL() << "the logarithm of 0 passed";
  } catch (const UserError& e) {
    EXPECT_TRUE(e.diagnostic().message.starts_with("log makes an infinity")) << e.what();
  }
  feeds["at"] = Tensor::of<std::int32_t>({3}, {0, 77, 2});
  try {
    (void)f.run(feeds);
    FAIL() << "index 77 passed";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::IndexOutOfRange) << e.what();
    EXPECT_EQ(e.diagnostic().where.line, static_cast<std::uint32_t>(line)) << e.what();
  }
}

}  // namespace
}  // namespace ricci::testing::shared_steps_test
