// Threads: many that run one program, a cap that holds, and memory that is planned for all of them.
#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "ricci/build/reduce.h"
#include "ricci/ir/text.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/transform/grad.h"

#include "runtime/counted_allocations.h"
#include "runtime/models.h"

namespace ricci::testing {
namespace {

TEST(RuntimeThreads, ManyRunOneProgram) {
  const CompiledGraph f = compile(wide_graph(), Device::cpu(3));
  constexpr std::size_t Count = 6;
  constexpr int Runs = 10;
  std::vector<Feeds> feeds;
  std::vector<std::vector<Tensor>> expected;
  for (std::size_t t = 0; t < Count; ++t) {
    feeds.push_back(random_feeds(wide_graph(), 10 * t));
    expected.push_back(f.run(feeds.back()));
  }
  std::array<int, Count> wrong = {};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < Count; ++t) {
    threads.emplace_back([&, t] {
      ExecutionContext context = f.make_context();
      std::vector<Tensor> out;
      std::vector<void*> to;
      for (const Type& type : f.outputs()) out.push_back(Tensor::zeros(type));
      for (Tensor& o : out) to.push_back(o.mutable_data());
      const std::array<const void*, 2> from = {feeds[t].at("x").data(), feeds[t].at("w").data()};
      for (int r = 0; r < Runs; ++r) {
        f.run(context, from, to);
        for (std::size_t k = 0; k < out.size(); ++k) {
          if (!out[k].identical(expected[t][k])) ++wrong[t];
        }
        // By name they share the contexts that wait.
        if (!f.run(feeds[t])[1].identical(expected[t][1])) ++wrong[t];
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const int w : wrong) EXPECT_EQ(w, 0);
}

TEST(RuntimeThreads, ParamsAreReadWhileOthersUpdateThem) {
  CompiledGraph f = compile(counting_graph(), Device::cpu(2), {.donations = {{0, "c"}, {2, "s"}}});
  f.set_param("c", Tensor::of<float>({}, {0}));
  f.set_param("s", Tensor::of<float>({3}, {0, 0, 0}));
  const Feeds feeds = {{"x", Tensor::of<float>({3}, {1, 1, 1})}};
  constexpr int Steps = 50;
  std::atomic<bool> torn = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < Steps; ++i) (void)f.update(feeds);
    });
    threads.emplace_back([&] {
      for (int i = 0; i < Steps; ++i) {
        const std::vector<float> s = f.param("s").elements<float>();
        if (s[0] != s[1] || s[1] != s[2]) torn = true;
        const std::vector<float> next = f.run(feeds)[2].elements<float>();
        if (next[0] != next[2]) torn = true;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_FALSE(torn);
  EXPECT_EQ(f.param("c").item(), 3 * Steps);
}

// How many threads this process has.
int thread_count() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return -1;
}

TEST(RuntimeThreads, CapIsNeverExceeded) {
  std::thread([] {}).join();  // a sanitizer's own thread begins with the first one
  const int before = thread_count();
  const Device three = Device::cpu(3);
  EXPECT_EQ(three.threads(), 3);
  const Graph gradient = value_and_grad(wide_graph(), {"w"}, {.zero_missing_wrt = true}).graph;
  const CompiledGraph f = compile(gradient, three);
  const Feeds feeds = random_feeds(gradient);
  int most = 0;
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) most = std::max(most, thread_count());
  });
  for (int i = 0; i < 20; ++i) (void)f.run(feeds);
  done = true;
  watcher.join();
  // Ours, two of the pool's, and the one that looks on.
  EXPECT_LE(most, before + 2 + 1);
}

TEST(RuntimeMemory, ATinyProgramAllocatesNothing) {
  Graph g("tiny");
  const Value x = g.input("x", f32({10}));
  const Value w = g.param("w", f32({10}));
  g.set_outputs({tanh(x * w + 1.0), reduce(x * x, {.op = ReduceKind::Sum, .axes = {0}})});
  const CompiledGraph f = compile(g);
  ExecutionContext context = f.make_context();
  std::array<float, 10> xs = {1, 2, 3};
  std::array<float, 10> ws = {4, 5};
  std::array<float, 10> ys = {};
  float sum = 0;
  const std::array<const void*, 2> in = {xs.data(), ws.data()};
  const std::array<void*, 2> out = {ys.data(), &sum};
  f.run(context, in, out);
  const CountedAllocations counted;
  for (int i = 0; i < 100; ++i) f.run(context, in, out);
  EXPECT_EQ(counted.count(), 0);
  EXPECT_EQ(sum, 14);
}

// Values for a graph's inputs and room for its outputs, by position.
struct Bound {
  Bound(const CompiledGraph& f, const Graph& g) : feeds(random_feeds(g)) {
    for (const Port& p : f.inputs()) in.push_back(feeds.at(p.name).data());
    for (const Type& t : f.outputs()) results.push_back(Tensor::zeros(t));
    for (Tensor& t : results) out.push_back(t.mutable_data());
  }
  Feeds feeds;
  std::vector<Tensor> results;
  std::vector<const void*> in;
  std::vector<void*> out;
};

// Runs after the first allocate nothing; gives what they compute.
std::vector<Tensor> run_without_allocating(const Graph& g) {
  const CompiledGraph f = compile(g, Device::cpu(1));
  ExecutionContext context = f.make_context();
  Bound with(f, g);
  f.run(context, with.in, with.out);
  const CountedAllocations counted;
  for (int i = 0; i < 10; ++i) f.run(context, with.in, with.out);
  EXPECT_EQ(counted.count(), 0) << g.name();
  return std::move(with.results);
}

// Products and loops are our own code: they allocate no more than kernels do.
TEST(RuntimeMemory, ProductsAndLoopsAllocateNothing) {
  Graph g("step");
  const Value x = g.input("x", f32({3, 40, 64}));
  const Value w = g.param("w", f32({64, 64}));
  const Value small = g.input("small", f32({5, 4, 4}));
  const Value h = relu(matmul(x, w) + 1.0);
  const Value loop = scan(
      reshape_to(narrow(h, {.axis = 0, .start = 0, .len = 1}), {40, 64}) * 0.01,
      [](Graph&, std::span<const Value> in) { return std::vector{in[0] * 0.5}; }, 3);
  g.set_outputs({h, matmul(small, small), loop});
  (void)run_without_allocating(g);
}

TEST(RuntimeMemory, ControlFlowAllocatesNothing) {
  const Graph g = parse_graph(R"(graph @control {
  %x = input "x" : f32[]
  %v = input "v" : f32[3]
  %w = while %x cond {
    %c = input "c" : f32[]
    %limit = constant 1000.0 : f32[]
    %p = lt %c, %limit
    return %p
  } body {
    %c = input "c" : f32[]
    %one = constant 1.0 : f32[]
    %n = add %c, %one
    return %n
  }
  %big = gt %w, %x
  %y = if %big, %v then {
    %c = input "c" : f32[3]
    %n = exp %c
    return %n
  } else {
    %c = input "c" : f32[3]
    return %c
  }
  return %w, %y
})");
  EXPECT_GE(run_without_allocating(g)[0].item(), 1000);
}

TEST(RuntimeMemory, HostKernelsAllocateNothing) {
  Graph g("host");
  const Value x = g.input("x", f32({9, 33}));
  const Value ids = g.constant(Tensor::of<std::int32_t>({5}, {0, 3, 3, 8, 1}));
  const auto [sorted, order] = sort(x, {.axis = 1});
  g.set_outputs(
      {cumsum(x, {.axis = 1}), scatter_add(gather(x, ids), ids, {.out_dim = 9}), sorted, order});
  (void)run_without_allocating(g);
}

// Bad indices in many tiles: the message is that of the first, whoever meets one first.
TEST(RuntimeThreads, TheFirstBadIndexIsReported) {
  Graph g("gather");
  const Value table = g.input("table", f32({16}));
  const Value ids = g.input("ids", i32({1 << 18}));
  g.set_outputs({gather(table, ids) * 2.0});
  std::vector<std::int32_t> bad(1 << 18, 3);
  for (std::size_t i = 1000; i < bad.size(); i += 1000) bad[i] = static_cast<std::int32_t>(i);
  const Feeds feeds = {{"table", Tensor::splat(f32({16}), 1.0)},
                       {"ids", Tensor::of<std::int32_t>({1 << 18}, bad)}};
  for (const int threads : {1, 2, 8}) {
    const CompiledGraph f = compile(g, Device::cpu(threads));
    for (int i = 0; i < 5; ++i) {
      try {
        static_cast<void>(f.run(feeds));
        FAIL();
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("index 1000 "), std::string::npos) << error.what();
      }
    }
  }
}

void expect_predicted_peak(const Graph& g, const Device& device) {
  const CompiledGraph f = compile(g, device);
  const Bound with(f, g);
  const CountedAllocations counted;
  ExecutionContext context = f.make_context();
  f.run(context, with.in, with.out);
  const auto predicted = static_cast<double>(f.workspace_bytes());
  const auto measured = static_cast<double>(counted.peak_bytes());
  EXPECT_NEAR(measured / predicted, 1, 0.02)
      << g.name() << ": " << measured << " measured, " << predicted << " predicted";
}

TEST(RuntimeMemory, PeakIsPredicted) {
  // Fresh pools: their threads have no room left over from other programs.
  const Graph large = [] {
    Graph g("large");
    const Value x = g.input("x", f32({512, 640}));
    const Value w = g.param("w", f32({640, 640}));
    Value h = x;
    for (int i = 0; i < 3; ++i) h = softmax(tanh(matmul(h, w)), {.axis = 1}) + x;
    g.set_outputs({reduce(square(h), {.op = ReduceKind::Mean, .axes = {0, 1}})});
    return g;
  }();
  const Graph gradient = value_and_grad(large, {"w"}).graph;
  for (const int threads : {1, 2, 8}) {
    std::thread([&] { expect_predicted_peak(large, Device::cpu(threads)); }).join();
    std::thread([&] { expect_predicted_peak(gradient, Device::cpu(threads)); }).join();
  }
}

}  // namespace
}  // namespace ricci::testing
