// Kernels attached to calls: they compute what they would have computed after them, to the bit, on
// any number of threads.
#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/spectrum.h"
#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/quantize.h"
#include "ricci/compiler/schedule/verify.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/device.h"
#include "ricci/transform/grad.h"

#include "backend/cpu/codegen/code_cache.h"
#include "backend/cpu/run/executable.h"
#include "backend/cpu/run/target.h"
#include "runtime/models.h"
#include "schedule/program_bytes.h"
#include "schedule/side_by_side.h"
#include "support/run_executable.h"
#include "support/test_pool.h"

namespace ricci::testing::attached_kernels_test {
namespace {

Program program_of(const Graph& graph) {
  return make_program(graph, {.fuse = true, .target = &cpu::target()});
}

std::size_t attached(const Program& program, std::optional<Launch> CallStep::* where) {
  std::size_t n = 0;
  for (const Step& step : program.steps) {
    const auto* call = std::get_if<CallStep>(&step.what);
    if (call != nullptr && call->*where) ++n;
  }
  return n;
}

// The same steps with the kernels before and behind the calls.
Program detached(Program program) {
  std::vector<Step> steps;
  for (Step& step : program.steps) {
    auto* call = std::get_if<CallStep>(&step.what);
    std::optional<Launch> after;
    if (call != nullptr) {
      after = std::exchange(call->after, std::nullopt);
      const std::optional<Launch> before = std::exchange(call->before, std::nullopt);
      if (before) steps.push_back(schedule::kernel_step({*before}));
    }
    steps.push_back(std::move(step));
    if (after) steps.push_back(schedule::kernel_step({*after}));
  }
  program.steps = std::move(steps);
  return program;
}

std::vector<Tensor> run(const Graph& graph, const Program& program, const Feeds& feeds,
                        int threads) {
  const Device device = Device::cpu(threads);
  const cpu::Executable executable(std::make_shared<const Program>(program),
                                   cpu::JitSource(pool_of(device)), pool_of(device));
  return run_executable(executable, graph, feeds);
}

void expect_same_bits(const Graph& graph, std::size_t wanted, std::size_t wanted_before = 0) {
  SCOPED_TRACE(graph.name());
  const Program together = program_of(graph);
  EXPECT_GE(attached(together, &CallStep::after), wanted) << to_string(together);
  EXPECT_EQ(attached(together, &CallStep::before), wanted_before) << to_string(together);
  EXPECT_NO_THROW((void)schedule::program_from_bytes(schedule::to_bytes(together)));
  const Program apart = detached(together);
  const Feeds feeds = random_feeds(graph);
  const std::vector<Tensor> expected = run(graph, apart, feeds, 1);
  for (const int threads : {1, 2, 3, 8}) {
    const std::vector<Tensor> actual = run(graph, together, feeds, threads);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(actual[i].identical(expected[i])) << "output " << i << ", " << threads;
    }
  }
  // And what is computed is right: op by op, without any of this.
  const std::vector<Tensor> plain = compile(graph, Device::cpu(1), {.fuse = false}).run(feeds);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(close(expected[i], plain[i], {.relative = 1e-2, .absolute = 1e-2}));
  }
}

Graph dense(DType dtype, std::vector<Dim> x, std::int64_t out) {
  Graph g(fmt::format("dense_{}_{}", name(dtype), out));
  const Value a = g.input("x", {dtype, x});
  const Value w = g.param("w", {dtype, {x.back(), out}});
  const Value b = g.param("b", {dtype, {out}});
  const Value y = gelu(matmul(a, w) + b);
  g.set_outputs({y});
  return g;
}

TEST(BackendAttached, BiasAndActivation) {
  expect_same_bits(dense(DType::F32, {512, 96}, 320), 1);
  expect_same_bits(dense(DType::F32, {4, 130, 64}, 193), 1);
  expect_same_bits(dense(DType::F32, {700, 300}, 3), 1);
  expect_same_bits(dense(DType::F32, {3, 5}, 7), 1);
  expect_same_bits(dense(DType::F64, {300, 65}, 129), 1);
  expect_same_bits(dense(DType::BF16, {300, 64}, 130), 1);
}

// Whatever is done with the elements of a product is done where they are made.
// [epilogue-set]
TEST(BackendAttached, ProductsTakeWhatFollows) {
  const auto one_step = [](const char* what, auto&& follow) {
    const auto expect_one = [&](const std::string& op, auto&& product) {
      Graph g(what);
      g.set_outputs({follow(product(g), g)});
      expect_same_bits(g, 1);
      const std::string report = compile(g, Device::cpu(1)).report();
      EXPECT_NE(report.find(op + ", then "), std::string::npos) << what << "\n" << report;
    };
    expect_one("matmul", [](Graph& g) {
      return matmul(g.input("x", f32({64, 96})), g.param("w", f32({96, 128})));
    });
    expect_one("conv", [](Graph& g) {
      return reshape_to(conv(g.input("x", f32({4, 8, 18, 18})), g.param("w", f32({8, 8, 3, 3}))),
                        {64, 128});
    });
  };
  one_step("activation", [](Value p, Graph&) { return gelu(p); });
  one_step("residual", [](Value p, Graph& g) { return p + g.input("r", f32({64, 128})); });
  one_step("scale", [](Value p, Graph&) { return p * 0.125; });
  one_step("clamp",
           [](Value p, Graph&) { return min(max(p, scalar_like(p, -1.0)), scalar_like(p, 1.0)); });
  one_step("cast", [](Value p, Graph&) { return cast(p, {.to = DType::BF16}); });
  one_step("mask", [](Value p, Graph& g) {
    return where(g.input("m", {DType::Bool, {64, 128}}), p * 2.0, scalar_like(p, 0.0));
  });
}

// [epilogue-set] Products of codes scale, shift, clamp and round what they give: nothing follows.
TEST(BackendAttached, ProductsOfCodesGiveCodes) {
  const auto one_step = [](const char* op, const Dims& x, const Dims& w, auto&& product) {
    Graph g(op);
    const Value left = dequantize(g.input("x", {DType::I8, x}), {.scales = {0.5}});
    const Value right = dequantize(g.input("w", {DType::I8, w}), {.scales = {0.25}});
    const Value kept = relu(product(left, right));
    g.set_outputs({quantize(kept, {.scales = {0.5}, .zero_points = {-128}})});
    const Program program = program_of(dead_code_elimination(convert_to_codes(g).graph).graph);
    ASSERT_EQ(program.steps.size(), 1U) << to_string(program);
    EXPECT_EQ(program.reference_of(std::get<CallStep>(program.steps[0].what)).name(), op);
  };
  one_step("q_matmul", {64, 96}, {96, 128}, [](Value a, Value b) { return matmul(a, b); });
  one_step("q_conv2d", {2, 4, 9, 9}, {8, 4, 3, 3}, [](Value a, Value b) { return conv(a, b); });
}

TEST(BackendAttached, FlatKernelsResidualsAndKeptResults) {
  Graph g("flat");
  const Value x = g.input("x", f32({6, 90, 70}));
  const Value w = g.param("w", f32({70, 70}));
  const Value p = matmul(x, w);
  const Value y = tanh(p) + x;
  const Value q = matmul(y, w);
  g.set_outputs({p, y, relu(q) * 0.5 + x, gt(q, scalar_like(q, 0))});
  expect_same_bits(g, 2);
}

TEST(BackendAttached, RowsThatAreReduced) {
  Graph g("rows");
  const Value x = g.input("x", f32({8, 64, 100}));
  const Value w = g.param("w", f32({100, 77}));
  const Value p = matmul(x, w);
  const Value n = layer_norm(p + g.param("b", f32({77})), g.param("gamma", f32({77})),
                             g.param("beta", f32({77})));
  const Value scores = matmul(n, transpose(n, {.perm = {0, 2, 1}}));
  g.set_outputs({softmax(scores * 0.1, {.axis = 2})});
  expect_same_bits(g, 2);
}

// Many matrices, of which several make a tile; one a for all of them, which are columns then.
TEST(BackendAttached, BatchesInEveryWay) {
  Graph g("batches");
  const Value a = g.input("a", f32({5, 33, 40, 12}));
  const Value b = g.input("b", f32({5, 33, 12, 9}));
  const Value one = g.input("one", f32({40, 12}));
  const Value c = g.input("c", f32({3, 12, 50}));
  g.set_outputs({exp(matmul(a, b)), sin(matmul(one, c))});
  expect_same_bits(g, 1);
}

Graph convolution(bool padded, DType dtype) {
  Graph g(fmt::format("conv_{}_{}", padded, name(dtype)));
  const Value x = g.input("x", {dtype, {7, 3, 18, 20}});
  const Value w = g.param("w", {dtype, {16, 3, 3, 3}});
  const Value b = g.param("b", {dtype, {16, 1, 1}});
  const std::int64_t p = padded ? 1 : 0;
  const Value y = conv(x, w, {.stride = {1, 1}, .padding = {p, p}});
  g.set_outputs({relu(y + b)});
  return g;
}

TEST(BackendAttached, Convolutions) {
  for (const bool padded : {false, true}) {
    for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
      expect_same_bits(convolution(padded, dtype), 1);
    }
  }
}

// y = f(gelu(x))·w, or the same with normalised rows.
Graph activated(DType dtype, std::vector<Dim> x, std::int64_t out, bool normalised) {
  Graph g(fmt::format("activated_{}_{}", name(dtype), out));
  const Value a = g.input("x", {dtype, x});
  const Value w = g.param("w", {dtype, {x.back(), out}});
  const Value h =
      normalised ? softmax(a, {.axis = static_cast<std::int64_t>(x.size()) - 1}) : gelu(a);
  g.set_outputs({matmul(h, w)});
  return g;
}

TEST(BackendAttached, WhatComesBeforeAProduct) {
  for (const bool normalised : {false, true}) {
    expect_same_bits(activated(DType::F32, {512, 96}, 320, normalised), 0, 1);
    expect_same_bits(activated(DType::F32, {4, 130, 64}, 193, normalised), 0, 1);
    expect_same_bits(activated(DType::F32, {700, 300}, 3, normalised), 0, 1);
    expect_same_bits(activated(DType::F32, {3, 5}, 7, normalised), 0, 1);
    expect_same_bits(activated(DType::F32, {40, 30}, 0, normalised), 0, 0);  // nothing to compute
    expect_same_bits(activated(DType::F64, {300, 65}, 129, normalised), 0, 1);
    expect_same_bits(activated(DType::BF16, {300, 64}, 130, normalised), 0, 1);
  }
}

TEST(BackendAttached, BeforeAndAfterAndWhatIsKept) {
  Graph g("both_sides");
  const Value x = g.input("x", f32({6, 90, 70}));
  const Value h = layer_norm(x, g.param("gamma", f32({70})), g.param("beta", f32({70})));
  const Value y = gelu(matmul(h, g.param("w", f32({70, 110}))) + g.param("b", f32({110})));
  g.set_outputs({h, y});
  expect_same_bits(g, 1, 1);
}

// A kernel that does not exist, or a buffer, is found in either of two.
TEST(BackendAttached, DamagedKernelsAreFound) {
  Graph g("both");
  const Value x = g.input("x", f32({90, 70}));
  g.set_outputs({tanh(matmul(exp(x), g.param("w", f32({70, 110}))))});
  const Program sound = program_of(g);
  ASSERT_EQ(attached(sound, &CallStep::before), 1U) << to_string(sound);
  ASSERT_EQ(attached(sound, &CallStep::after), 1U) << to_string(sound);
  EXPECT_EQ(find_fault(sound), std::nullopt);
  for (std::optional<Launch> CallStep::* which : {&CallStep::before, &CallStep::after}) {
    const auto damaged = [&](auto&& damage) {
      Program p = sound;
      for (Step& step : p.steps) {
        if (auto* call = std::get_if<CallStep>(&step.what)) damage(*(call->*which));
      }
      return find_fault(p).value_or("nothing");
    };
    EXPECT_TRUE(damaged([](Launch& l) {
                  l.kernel = 1000;
                }).ends_with(": a step launches a kernel that does not exist"));
    EXPECT_TRUE(damaged([](Launch& l) {
                  l.buffers[0] = 1000;
                }).ends_with(": a step uses a buffer that does not exist"));
  }
}

// What multiplies itself, or is read again behind the product, is there before it begins.
TEST(BackendAttached, MakersThatStayApart) {
  Graph g("apart");
  const Value x = g.input("x", f32({80, 80}));
  const Value h = exp(x);
  const Value q = sin(x);
  g.set_outputs({matmul(h, h), matmul(q, g.param("w", f32({80, 80}))) * q});
  expect_same_bits(g, 1, 0);
}

// One a for several matrices, and one for all of them.
TEST(BackendAttached, MakersOfSharedOperands) {
  Graph g("shared");
  const Value one = g.input("one", f32({40, 12}));
  const Value a = g.input("a", f32({3, 1, 40, 12}));
  g.set_outputs({matmul(cos(one), g.input("c", f32({3, 12, 50}))),
                 matmul(tanh(a), g.input("d", f32({1, 4, 12, 9})))});
  expect_same_bits(g, 0, 2);
}

TEST(BackendAttached, WhatComesBeforeAConvolution) {
  for (const bool padded : {false, true}) {
    for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
      Graph g = Graph(fmt::format("before_conv_{}_{}", padded, name(dtype)));
      const Value x = g.input("x", {dtype, {7, 3, 18, 20}});
      const Value w = g.param("w", {dtype, {16, 3, 3, 3}});
      const std::int64_t p = padded ? 1 : 0;
      const Value y = conv(tanh(x), w, {.stride = {1, 1}, .padding = {p, p}});
      g.set_outputs({relu(y)});
      expect_same_bits(g, 1, 1);
    }
  }
}

// Windows, and what becomes of spectra: lengths that are transformed in registers, as columns side
// by side, in passes and by a convolution; rows that are of no use to tiles, and along other axes.
TEST(BackendAttached, WindowsAndSpectra) {
  for (const auto& [length, lines] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {512, 150}, {16, 300}, {100, 70}, {1009, 5}, {4096, 9}, {20000, 9}, {30000, 2}}) {
    for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
      Graph g(fmt::format("window_{}_{}_{}", name(dtype), length, lines));
      const Value x = g.input("x", {dtype, {3, lines, length}});
      const Value bins = rfft(x * g.param("w", {dtype, {length}}));
      g.set_outputs({dtype == DType::BF16 ? bins : bins * conjugate(bins)});
      expect_same_bits(g, dtype == DType::BF16 ? 0 : 1, 1);
    }
    Graph g(fmt::format("complex_{}_{}", length, lines));
    const Value z = g.input("z", {DType::C64, {lines, length}});
    g.set_outputs({fft(z * g.param("w", {DType::C64, {length}})) * 0.5});
    expect_same_bits(g, 1, 1);
  }
  for (const std::int64_t length : {16, 100, 512, 1009, 4096, 20000}) {
    // What others want as well is kept.
    Graph g(fmt::format("shared_{}", length));
    const Value y = g.input("x", f32({9, length})) * g.param("w", f32({length}));
    const Value bins = rfft(y);
    g.set_outputs({bins, y});
    expect_same_bits(g, 0, 1);
    g.set_outputs({y, bins});
    expect_same_bits(g, 0, 1);
    g.set_outputs({bins, matmul(y, g.param("v", f32({length, 3})))});
    expect_same_bits(g, 0, 1);
  }
  Graph g("frames");
  const Value frames = frame(g.input("x", f32({2, 4000})), {.frame_len = 256, .hop = 64});
  g.set_outputs({rfft(frames * g.param("w", f32({256}))), frames * g.param("v", f32({256}))});
  expect_same_bits(g, 0, 1);
}

// What is made in a thread's own room is looked at all the same.
TEST(BackendAttached, InfinitiesBeforeATransformAreFound) {
  Graph g("window");
  const Value x = g.input("x", f32({40, 64}));
  g.set_outputs({rfft(log(x))});
  const CompiledGraph f = compile(g);
  ASSERT_EQ(attached(f.program(), &CallStep::before), 1U);
  const Feeds ones = {{"x", Tensor::splat(f32({40, 64}), 1)}};
  EXPECT_NO_THROW((void)f.run(ones, {.check_finite = true}));
  try {
    (void)f.run({{"x", Tensor::zeros(f32({40, 64}))}}, {.check_finite = true});
    FAIL() << "the logarithm of 0 passed";
  } catch (const UserError& e) {
    EXPECT_TRUE(e.diagnostic().message.starts_with("log makes an infinity")) << e.what();
  }
}

// A weight that is not finite sends a padded convolution another way, which has no tiles.
TEST(BackendAttached, RunsBehindACallThatTakesAnotherWay) {
  const Graph g = convolution(true, DType::F32);
  const Program together = program_of(g);
  ASSERT_EQ(attached(together, &CallStep::after), 1U);
  Feeds feeds = random_feeds(g);
  std::vector<float> w = feeds.at("w").elements<float>();
  w[5] = std::numeric_limits<float>::infinity();
  feeds["w"] = Tensor::of<float>({16, 3, 3, 3}, w);
  const std::vector<Tensor> expected = run(g, detached(together), feeds, 1);
  EXPECT_TRUE(run(g, together, feeds, 3)[0].identical(expected[0]));
}

// A bad index is one of the kernel's, not of the product it is attached to.
TEST(BackendAttached, FaultsAreThoseOfTheKernel) {
  Graph g("rows");
  const Value rows = gather(g.input("table", f32({16, 30})), g.input("ids", i32({40})));
  g.set_outputs({matmul(rows * 2.0, g.param("w", f32({30, 20})))});
  const CompiledGraph f = compile(g);
  ASSERT_EQ(attached(f.program(), &CallStep::before), 1U);
  Feeds feeds = random_feeds(g);
  feeds["ids"] = Tensor::splat(i32({40}), 99);
  try {
    (void)f.run(feeds);
    FAIL() << "row 99 of 16 was read";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::IndexOutOfRange);
    EXPECT_EQ(std::string(e.what()).find("matmul"), std::string::npos) << e.what();
  }
}

TEST(BackendAttached, FaultsAndInfinitiesAreFound) {
  Graph g("faults");
  const Value x = g.input("x", f32({40, 30}));
  const Value y = log(matmul(x, g.param("w", f32({30, 20}))));
  g.set_outputs({y});
  const CompiledGraph f = compile(g);
  ASSERT_EQ(attached(f.program(), &CallStep::after), 1U);
  const Feeds zeros = {{"x", Tensor::zeros(f32({40, 30}))}, {"w", Tensor::zeros(f32({30, 20}))}};
  EXPECT_NO_THROW((void)f.run(zeros));
  try {
    (void)f.run(zeros, {.check_finite = true});
    FAIL() << "the logarithm of 0 passed";
  } catch (const UserError& e) {
    EXPECT_TRUE(e.diagnostic().message.starts_with("log makes an infinity")) << e.what();
  }
}

}  // namespace
}  // namespace ricci::testing::attached_kernels_test
