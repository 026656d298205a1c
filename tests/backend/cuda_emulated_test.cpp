// The CUDA back end without a GPU: its whole road, from programs to captured graphs, on an emulated
// driver (support/emulated_driver.h) that refuses what a GPU refuses and fails when it is told to.
// A process has one driver, so the tests of BackendEmulatedGpu run in a process of their own, which
// one test here starts; by themselves they have nothing to run on.
#include <array>
#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/build/shape.h"
#include "ricci/compiler/device/backend.h"
#include "ricci/runtime/ahead_of_time.h"
#include "ricci/support/stop.h"

#include "backend/cuda/run/code.h"
#include "backend/cuda/run/executable.h"
#include "runtime/models.h"
#include "support/compare.h"
#include "support/cuda_run.h"
#include "support/emulated_gpu.h"

namespace ricci::testing::cuda_emulated_test {
namespace {

// The suites below, and all tests that want a GPU, in a process that finds the emulated one.
TEST(BackendCudaEmulated, TestsThatNeedAGpuPass) {
  if (const std::string why = why_no_emulated_gpu(); !why.empty()) GTEST_SKIP() << why;
  const EmulatedRun run = run_with_emulated_gpu(
      "BackendEmulatedGpu.*:BackendCudaDevice.*:BackendCudaFaults.*:BackendCudaMemory.*:"
      "BackendCudaCodeFolder.*:BackendCudaLoading.*:PropertyCudaGraphs.*:*BackendDevices.*/cuda",
      false);
  EXPECT_EQ(run.status, 0) << run.log;
  EXPECT_EQ(run.log.find("SKIPPED"), std::string::npos) << run.log;
  EXPECT_NE(run.log.find("BackendEmulatedGpu.RunsGraphs"), std::string::npos) << run.log;
  EXPECT_NE(run.log.find("BackendDevices.FaultsAreToldInTheSameWords/cuda"), std::string::npos)
      << run.log;
}

class BackendEmulatedGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (emulated_folder() == nullptr) {
      GTEST_SKIP() << "run by BackendCudaEmulated.TestsThatNeedAGpuPass";
    }
    ASSERT_EQ(why_no_cuda(), "");
    const auto find = [](const char* name) { return emulated_function("libcuda.so.1", name); };
    answer_ = reinterpret_cast<decltype(answer_)>(find("emulated_answer"));
    calls_ = reinterpret_cast<decltype(calls_)>(find("emulated_calls"));
    used_ = reinterpret_cast<decltype(used_)>(find("emulated_used"));
    graph_ = reinterpret_cast<decltype(graph_)>(find("emulated_graph"));
    ASSERT_TRUE(answer_ != nullptr && calls_ != nullptr && used_ != nullptr && graph_ != nullptr);
  }
  void TearDown() override {
    if (answer_ == nullptr) return;
    for (const char* name : Failing) answer_(name, 0, 0);
  }
  /// The next `times` calls of a driver's function give a status.
  void answer(const char* name, int status, int times) { answer_(name, status, times); }
  [[nodiscard]] long calls(const char* name) const { return calls_(name); }
  /// Bytes of the GPU's memory that are handed out.
  [[nodiscard]] std::int64_t used() const { return used_(); }
  /// The graph that was launched last.
  struct GraphShape {
    long nodes = 0;
    long longest_way = 0;  ///< nodes that wait for each other
  };
  [[nodiscard]] GraphShape last_graph() const {
    GraphShape shape;
    graph_(&shape.nodes, &shape.longest_way);
    return shape;
  }

  static constexpr int NoRoom = 2;
  static constexpr std::array Failing = {"cuModuleLoadData",   "cuStreamCreate",
                                         "cuMemAllocHost_v2",  "cuMemAllocAsync",
                                         "cuLaunchKernel",     "cuStreamBeginCapture_v2",
                                         "cuStreamEndCapture", "cuGraphInstantiateWithFlags"};

 private:
  void (*answer_)(const char*, int, int) = nullptr;
  long (*calls_)(const char*) = nullptr;
  std::int64_t (*used_)() = nullptr;
  void (*graph_)(long*, long*) = nullptr;
};

void expect_as_interpreted(const std::vector<Tensor>& actual, const Graph& g, const Feeds& feeds) {
  const std::vector<Tensor> expected = interpret(g, feeds);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(close(actual[i], expected[i])) << "output " << i;
  }
}

ErrorCode code_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& e) {
    return e.code();
  }
  return {};
}

TEST_F(BackendEmulatedGpu, RunsGraphs) {
  for (const Graph& g : {dense_graph(), wide_graph()}) {
    const Feeds feeds = random_feeds(g);
    expect_as_interpreted(run_on_cuda(g, feeds), g, feeds);
  }
}

TEST_F(BackendEmulatedGpu, ReportsSayWhyProductsAreKernels) {
  const std::string report = compile(dense_graph(), cuda_device()).report();
  EXPECT_NE(report.find("kernel ("), std::string::npos) << report;
  EXPECT_NE(report.find("cuBLASLt"), std::string::npos) << report;
}

TEST_F(BackendEmulatedGpu, MultipliesAllTypes) {
  for (const DType dtype : {DType::F32, DType::F64, DType::BF16, DType::C64, DType::C128}) {
    Graph g("product");
    const Value a = g.input("a", Type(dtype, {40, 24}));
    const Value b = g.input("b", Type(dtype, {24, 12}));
    g.set_outputs({matmul(a, slice(b, {.axis = 1, .step = 2}))});
    const Feeds feeds = random_feeds(g);
    expect_as_interpreted(run_on_cuda(g, feeds), g, feeds);
  }
}

// What has nothing to do with each other is launched together.
TEST_F(BackendEmulatedGpu, UpdatesManyArraysWithOneLaunch) {
  const Graph g = updates_graph();
  CompileOptions options;
  for (std::size_t k = 0; k < g.outputs().size(); ++k) {
    options.donations.push_back({k, fmt::format("w{}", k)});
  }
  const CompiledGraph f = compile(g, cuda_device(), options);
  const Feeds feeds = random_feeds(g);
  const long before = calls("cuLaunchKernel");
  expect_as_interpreted(f.run(feeds), g, feeds);
  EXPECT_EQ(calls("cuLaunchKernel") - before, 1);
}

// Results that nobody wants at the end of a loop's have no parameter.
TEST_F(BackendEmulatedGpu, RunsLoopsWhoseLastResultsNobodyWants) {
  Graph g("scanned");
  const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    const Value next = tanh(v[0] + v[1]);
    return {next, next * 2.0, next + 1.0};
  };
  const auto all =
      scan(std::array{g.input("c", f32({8}))}, {.xs = {g.input("x", f32({5, 8}))}}, body);
  ASSERT_EQ(all.size(), 3U);
  g.set_outputs({all[0]});
  const Feeds feeds = random_feeds(g);
  expect_as_interpreted(run_on_cuda(g, feeds), g, feeds);
}

// What a step makes of its row alone, and reads, hands on or gives as it is.
TEST_F(BackendEmulatedGpu, ComputesAtOnceWhatStepsNeedNotWaitFor) {
  for (const bool reverse : {false, true}) {
    Graph g("rows");
    const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
      const Value own = tanh(matmul(v[2], v[1]));
      const Value next = v[0] * 0.5 + exp(own * v[3]);
      return {next, own, next * v[2], exp(v[3])};
    };
    g.set_outputs(scan(std::array{g.input("c", f32({2, 8}))},
                       {.bcasts = {g.input("w", f32({8, 8}))},
                        .xs = {g.input("x", f32({20, 2, 8})), g.input("s", f32({20, 1, 8}))},
                        .reverse = reverse},
                       body));
    const std::string report = compile_text(g, "report", {.device = "cuda"});
    EXPECT_EQ(report.find("tanh", report.find("body:")), std::string::npos) << report;
    const Feeds feeds = random_feeds(g);
    expect_as_interpreted(run_on_cuda(g, feeds), g, feeds);
  }
}

// Goes on for as long as its first number is above zero, which it stays.
Graph endless_graph() {
  Graph g("endless");
  const auto goes_on = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    const Value total = reduce(v[0], {.op = ReduceKind::Sum, .axes = {0}});
    return {gt(total, scalar_like(total, 0))};
  };
  const auto step = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    return {v[0] * 0.5 + 0.5};
  };
  g.set_outputs({while_loop(std::array{g.input("x", f32({4}))}, goes_on, step).carries[0]});
  return g;
}

TEST_F(BackendEmulatedGpu, LoopsThatNeverEndAreStopped) {
  const CompiledGraph f = compile(endless_graph(), cuda_device());
  ASSERT_EQ(f.served_by(0), "loop");
  const Tensor ones = Tensor::of<float>({4}, {1, 1, 1, 1});
  const Tensor below = Tensor::of<float>({4}, {-9, -1, -1, -1});
  // A program that goes the same way again is launched as a graph.
  const auto launches = [&] { return calls("cuLaunchKernel") + calls("cuGraphLaunch"); };
  for (int again = 0; again < 3; ++again) {
    const StopSource stop;
    const long before = launches();
    std::atomic<bool> over = false;
    std::thread presses([&] {
      while (launches() == before && !over) std::this_thread::yield();
      stop.request_stop();
    });
    EXPECT_EQ(code_of([&] { (void)f.run({{"x", ones}}, {.stop = stop.token()}); }),
              ErrorCode::Stopped);
    over = true;
    presses.join();
    EXPECT_TRUE(same(f.run({{"x", below}})[0], below));
  }
}

// A fault before a loop ends it, and what a faulty index gives is zero.
TEST_F(BackendEmulatedGpu, FaultsEndLoopsBehindThem) {
  Graph g("fault");
  const Value rows = gather(g.input("table", f32({4, 4})), g.input("ids", i32({2})));
  const auto goes_on = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    const Value total = reduce(v[0], {.op = ReduceKind::Sum, .axes = {0, 1}});
    return {ge(total, scalar_like(total, 0))};
  };
  const auto step = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    return {v[0] * 0.5};
  };
  g.set_outputs({while_loop(std::array{rows}, goes_on, step).carries[0]});
  const CompiledGraph f = compile(g, cuda_device());
  const Tensor table = Tensor::splat(f32({4, 4}), -1.0);
  for (int again = 0; again < 3; ++again) {
    const Feeds bad = {{"table", table}, {"ids", Tensor::of<std::int32_t>({2}, {9, 7})}};
    const Feeds good = {{"table", table}, {"ids", Tensor::of<std::int32_t>({2}, {3, 1})}};
    EXPECT_EQ(code_of([&] { (void)f.run(bad); }), ErrorCode::IndexOutOfRange);
    EXPECT_TRUE(same(f.run(good)[0], Tensor::splat(f32({2, 4}), -1.0)));
  }
}

// Rows too long for a block: one kernel for all steps of the network.
TEST_F(BackendEmulatedGpu, SortsLongRowsWithAFewKernels) {
  Graph g("sorted");
  const Value x = g.input("x", f32({5000}));
  g.set_outputs({sort(x)[0]});
  const Feeds feeds = random_feeds(g);
  const long before = calls("cuModuleLoadData");
  expect_as_interpreted(compile(g, cuda_device()).run(feeds), g, feeds);
  EXPECT_LE(calls("cuModuleLoadData") - before, 3);
}

// What a context takes is what it says, copies for the bodies of loops and branches included.
TEST_F(BackendEmulatedGpu, ContextsTakeWhatTheySay) {
  Graph g("rows");
  const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    const Value sorted = sort(v[0] + v[1])[0];
    return {sorted, sorted * 2.0};
  };
  g.set_outputs(
      scan(std::array{g.input("c", f32({7}))}, {.xs = {g.input("x", f32({5, 7}))}}, body));
  const device::Backend& backend = cuda_device().backend();
  const auto made = backend.compile(
      std::make_shared<const Program>(make_program(g, {.target = &backend.target()})));
  ASSERT_EQ(made->served_by(0), "control");
  const std::int64_t before = used();
  const auto context = made->make_context();
  const std::int64_t taken = used() - before;
  constexpr std::int64_t Arrays = 8;  // each rounded up
  EXPECT_EQ(context->bytes(), made->context_bytes());
  EXPECT_LE(taken, made->context_bytes());
  EXPECT_GE(taken, made->context_bytes() - Arrays * cuda::ArrayAlignment);
  EXPECT_GT(made->context_bytes(), made->program().arena_bytes + 2 * cuda::ArrayAlignment);
}

// Once there is no room: what the pool keeps is given back, and it is tried again. Twice: an error.
TEST_F(BackendEmulatedGpu, WithoutRoomTriesAgainAndThenSaysSo) {
  const Graph g = dense_graph(5, 6, 7);
  const Feeds feeds = random_feeds(g);
  for (const char* name : {"cuModuleLoadData", "cuStreamCreate", "cuMemAllocHost_v2"}) {
    cuda::forget_code();
    const long trims = calls("cuMemPoolTrimTo");
    answer(name, NoRoom, 1);
    expect_as_interpreted(compile(g, cuda_device()).run(feeds), g, feeds);
    EXPECT_GT(calls("cuMemPoolTrimTo"), trims) << name;
    cuda::forget_code();
    answer(name, NoRoom, 100);
    EXPECT_EQ(code_of([&] { (void)compile(g, cuda_device()).run(feeds); }), ErrorCode::OutOfMemory)
        << name;
    answer(name, 0, 0);
  }
  const CompiledGraph f = compile(g, cuda_device());
  answer("cuLaunchKernel", NoRoom, 1);
  EXPECT_EQ(code_of([&] { (void)f.run(feeds); }), ErrorCode::OutOfMemory);
  expect_as_interpreted(f.run(feeds), g, feeds);
}

TEST_F(BackendEmulatedGpu, GivesOutWhatIsStillOnItsWayBack) {
  device::Memory& memory = cuda_device().backend().memory();
  const std::int64_t most = memory.total_bytes() / 8 * 5;
  for (int again = 0; again < 3; ++again) {
    const device::Array array(memory, most);
    EXPECT_NE(array.data(), nullptr);
  }
}

// Branches that share nothing, and meet at the end.
TEST_F(BackendEmulatedGpu, GraphsWaitForNoMoreThanTheyMust) {
  Graph g("branches");
  std::vector<Value> ends;
  for (const char* branch : {"a", "b", "c", "d"}) {
    const Value w = g.param(branch, f32({8, 8}));
    Value y = w;
    for (int depth = 0; depth < 3; ++depth) y = tanh(matmul(y, w));
    ends.push_back(y);
  }
  g.set_outputs({ends[0] + ends[1] + (ends[2] + ends[3])});
  const Feeds feeds = random_feeds(g);
  expect_as_interpreted(run_on_cuda(g, feeds), g, feeds);
  EXPECT_GE(last_graph().nodes, 4 * 5);
  EXPECT_LE(last_graph().longest_way, 6 + 2);
}

// A driver that cannot capture runs the program step by step, and is not asked again.
TEST_F(BackendEmulatedGpu, RunsWhatCannotBeCaptured) {
  constexpr int CaptureFailed = 901;
  const Graph g = wide_graph();
  const device::Backend& backend = cuda_device().backend();
  for (const char* name :
       {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags"}) {
    for (const int status : {CaptureFailed, NoRoom}) {
      const auto made = backend.compile(
          std::make_shared<const Program>(make_program(g, {.target = &backend.target()})));
      const auto context = made->make_context();
      const Feeds feeds = random_feeds(g);
      std::vector<device::Array> arrays;
      std::vector<const std::byte*> inputs;
      std::vector<std::byte*> outputs;
      for (const Tensor& t : check_feeds(g, feeds).values) {
        arrays.emplace_back(backend.memory(), static_cast<std::int64_t>(t.bytes().size()));
        arrays.back().copy_in(t.data());
        inputs.push_back(arrays.back().data());
      }
      const std::vector<Tensor> expected = interpret(g, feeds);
      for (const Tensor& t : expected) {
        arrays.emplace_back(backend.memory(), static_cast<std::int64_t>(t.bytes().size()));
        outputs.push_back(arrays.back().data());
      }
      const long before = calls("cuStreamBeginCapture_v2");
      answer(name, status, 100);
      for (int run = 0; run < 4; ++run) {
        device::run(*made, *context, {inputs, outputs, 0, nullptr});
        for (std::size_t o = 0; o < expected.size(); ++o) {
          Tensor actual = Tensor::zeros(expected[o].type());
          arrays[inputs.size() + o].copy_out(actual.mutable_data());
          EXPECT_TRUE(close(actual, expected[o])) << name << ", run " << run << ", output " << o;
        }
      }
      answer(name, 0, 0);
      EXPECT_EQ(calls("cuStreamBeginCapture_v2"), before + 1) << name;
    }
  }
}

// What a kernel shares is in part its own, in part given to it: together it may be more than a GPU
// gives without being asked.
TEST_F(BackendEmulatedGpu, AsksForSharedMemory) {
  const std::string source =
      "extern \"C\" __global__ void __launch_bounds__(32) k(int* out) {\n"
      "  __shared__ int own[10000];\n"
      "  own[threadIdx.x] = int(threadIdx.x);\n  out[threadIdx.x] = own[threadIdx.x];\n}\n";
  const cuda::Gpu& gpu = cuda::Gpu::get();
  gpu.use();
  cuda::KernelText text{.name = "k", .text = source, .threads = 32, .shared_bytes = 20000};
  const std::span code(source.c_str(), source.size() + 1);
  const auto loaded = std::make_shared<const cuda::LoadedCode>(gpu, code);
  const cuda::LoadedKernel kernel(loaded, text.name, text);
  const device::Array out(cuda_device().backend().memory(), 128);
  std::byte* at = out.data();
  std::array<void*, 1> arguments = {static_cast<void*>(&at)};
  EXPECT_EQ(gpu.driver().launch(kernel.function(), 1, 1, 1, 32, 1, 1, 20000, gpu.memory_stream(),
                                arguments.data(), nullptr),
            0);
  EXPECT_EQ(gpu.driver().stream_wait(gpu.memory_stream()), 0);  // before the kernel is unloaded
  text.shared_bytes = gpu.shared_bytes() + 1;
  EXPECT_EQ(code_of([&] { const cuda::LoadedKernel none(loaded, text.name, text); }),
            ErrorCode::UnsupportedOnBackend);
}

}  // namespace
}  // namespace ricci::testing::cuda_emulated_test
